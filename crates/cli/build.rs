//! Notes the commit and the compiler, which every measurement names.

use std::process::Command;

fn main() {
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    set("MINRNN_COMPILER", output(&compiler, &["--version"]));
    set("MINRNN_COMMIT", output("git", &["rev-parse", "--short", "HEAD"]));
    println!("cargo::rerun-if-changed=build.rs");
    // The log of HEAD grows with every commit and checkout; HEAD itself only names the branch.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = output("git", &["rev-parse", "--git-path", file]).filter(|path| std::path::Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

fn set(name: &str, value: Option<String>) {
    println!("cargo::rustc-env={name}={}", value.as_deref().unwrap_or("unknown"));
}

/// What a program prints, if it is there and succeeds.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let done = Command::new(program).args(arguments).output().ok().filter(|done| done.status.success())?;
    let text = String::from_utf8(done.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}
