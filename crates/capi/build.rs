//! Gives the shared library the name that it is installed under.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let [os, major, minor] = ["CARGO_CFG_TARGET_OS", "CARGO_PKG_VERSION_MAJOR", "CARGO_PKG_VERSION_MINOR"]
        .map(|name| std::env::var(name).expect("Cargo tells its build scripts"));
    match os.as_str() {
        "linux" | "freebsd" | "netbsd" | "openbsd" => println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libminrnn.so.{major}.{minor}"),
        "macos" => println!("cargo::rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libminrnn.{major}.{minor}.dylib"),
        _ => {}
    }
}
