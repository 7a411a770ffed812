//! A limit on the size of files does not end the process.

/// Lets a write beyond the limit on file sizes (`ulimit -f`) fail with a reason, as other writes do, instead of ending the process.
pub fn outlive() {
    // SAFETY: ignoring a signal installs no handler, and no thread is running yet.
    #[cfg(unix)]
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}
