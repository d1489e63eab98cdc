//! SIGINT and SIGTERM: once, stop in good order; twice, at once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::Result;
use batchquad::evaluate::Interrupt;

/// How many signals have arrived.
#[derive(Debug, Clone, Default)]
pub struct Signals(Arc<AtomicUsize>);

impl Signals {
    /// Starts to listen. The first signal is only counted, for the main loop to find; the second ends all children and,
    /// shortly after, this process.
    #[cfg(unix)]
    pub fn listen(interrupt: Interrupt) -> Result<Self> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        use std::time::Duration;

        /// Time for workers to kill their processes, and for the main thread to end by itself.
        const LAST_MOMENT: Duration = Duration::from_secs(2);

        let count = Self::default();
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
        let seen = count.clone();
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            for _ in signals.forever() {
                if seen.0.fetch_add(1, Ordering::SeqCst) == 0 {
                    continue;
                }
                interrupt.raise();
                interrupt.raise();
                std::thread::sleep(LAST_MOMENT);
                std::process::exit(crate::exit::Exit::Interrupted as i32);
            }
        })?;
        Ok(count)
    }

    /// Elsewhere the system's own way of ending a program holds.
    #[cfg(not(unix))]
    pub fn listen(_interrupt: Interrupt) -> Result<Self> {
        Ok(Self::default())
    }

    /// Whether one has arrived.
    pub fn arrived(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}
