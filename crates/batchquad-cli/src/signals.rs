//! Signals: once, stop in good order; twice, at once.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use anyhow::Result;
use batchquad::interrupt::Interrupt;

/// What has arrived, and who knows of it.
#[derive(Debug, Clone, Default)]
pub struct Signals(Arc<Heard>);

#[derive(Debug, Default)]
struct Heard {
    count: AtomicUsize,
    computing: Interrupt,
    seen: AtomicBool,
}

impl Signals {
    /// Starts to listen: to what ends a program by hand (INT, QUIT, TERM), with its terminal (HUP), before its job is ended by a
    /// batch system (USR1, USR2, XCPU) or by a clock (ALRM).
    ///
    /// The first signal breaks off what is being computed and is left for the main loop to find, which has a second for that:
    /// a step that takes longer is not waited for, and `farewell` is said in the loop's place. The second signal ends all
    /// children and, shortly after, this process. Before it ends in one of these ways it will `resign`.
    #[cfg(unix)]
    pub fn listen(
        interrupt: Interrupt,
        resign: impl Fn() + Send + Sync + 'static,
        farewell: impl Fn() + Send + 'static,
    ) -> Result<Self> {
        use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU};
        use std::time::Duration;

        /// Time for workers to kill their processes, and for the main thread to end by itself.
        const LAST_MOMENT: Duration = Duration::from_secs(2);
        /// Time for the main loop to notice.
        const PATIENCE: Duration = Duration::from_secs(1);
        /// Time for children to end when it does not.
        const NOTICE: Duration = Duration::from_millis(200);

        // A shell's background jobs begin with INT and QUIT ignored; whoever sends one means it.
        let mut heeded = vec![SIGINT, SIGQUIT, SIGTERM];
        // Whoever started us with these ignored (nohup) meant it.
        heeded.extend([SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU, SIGALRM].into_iter().filter(|signal| !is_ignored(*signal)));
        let heard = Self::default();
        let mut signals = signal_hook::iterator::Signals::new(heeded)?;
        let (listener, mut farewell) = (heard.clone(), Some(farewell));
        let leave = Arc::new(move || {
            resign();
            std::process::exit(crate::exit::Exit::Interrupted as i32);
        });
        let listen = move || {
            for _ in signals.forever() {
                let first = listener.0.count.fetch_add(1, Ordering::SeqCst) == 0;
                listener.0.computing.raise();
                let (heard, interrupt, leave) = (listener.clone(), interrupt.clone(), Arc::clone(&leave));
                if let Some(farewell) = farewell.take_if(|_| first) {
                    let _ = std::thread::Builder::new().name("patience".into()).spawn(move || {
                        std::thread::sleep(PATIENCE);
                        if heard.0.seen.load(Ordering::SeqCst) {
                            return;
                        }
                        interrupt.raise();
                        std::thread::sleep(NOTICE);
                        interrupt.raise();
                        std::thread::sleep(NOTICE);
                        farewell();
                        leave();
                    });
                    continue;
                }
                interrupt.raise();
                interrupt.raise();
                std::thread::sleep(LAST_MOMENT);
                leave();
            }
        };
        std::thread::Builder::new().name("signals".into()).spawn(listen)?;
        Ok(heard)
    }

    /// Elsewhere the system's own way of ending a program holds.
    #[cfg(not(unix))]
    pub fn listen(
        _interrupt: Interrupt,
        _resign: impl Fn() + Send + Sync + 'static,
        _farewell: impl Fn() + Send + 'static,
    ) -> Result<Self> {
        Ok(Self::default())
    }

    /// Whether one has arrived. From then on it is the caller's to end in good order.
    pub fn arrived(&self) -> bool {
        let arrived = self.0.count.load(Ordering::SeqCst) > 0;
        if arrived {
            self.0.seen.store(true, Ordering::SeqCst);
        }
        arrived
    }

    /// What breaks computations off.
    pub fn computing(&self) -> &Interrupt {
        &self.0.computing
    }
}

/// Whether a signal was ignored when this process began; known where the system tells.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
