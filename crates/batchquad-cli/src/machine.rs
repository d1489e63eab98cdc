//! What the machine allows: threads and memory. If there is too little of either, the program says so or makes do, before work begins.

use anyhow::{Result, anyhow};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// With less memory than this, the program could not even say later what is wrong: a run of eight evaluations on two threads takes more than half of it.
const LEAST: u64 = 256 << 20;

/// Threads for parallel loops, as long as the value lives; if none can be started, the current thread does everything.
#[must_use]
pub fn threads() -> Option<ThreadPool> {
    match ThreadPoolBuilder::new().build_global() {
        Ok(()) => None,
        Err(_) => ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().ok(),
    }
}

/// Makes a write beyond the largest size of a file (`ulimit -f`) fail, as on a full disk, instead of ending the program.
#[cfg(unix)]
pub fn outlive_limits() {
    let noticed = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    // Where that is not possible, the system's default stays.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, noticed);
}

#[cfg(not(unix))]
pub fn outlive_limits() {}

/// Whether there is memory to work with (`ulimit -v`).
#[cfg(unix)]
pub fn require_memory() -> Result<()> {
    use rustix::process::{Resource, getrlimit};
    match getrlimit(Resource::As).current {
        Some(bytes) if bytes < LEAST => {
            let (found, least) = (bytes >> 10, LEAST >> 10);
            Err(anyhow!("the memory of a process is limited to {found} kB (ulimit -v), expected at least {least} kB"))
        }
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
pub fn require_memory() -> Result<()> {
    Ok(())
}
