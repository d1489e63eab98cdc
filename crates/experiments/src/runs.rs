//! Many runs on all cores, each kept in a file of its own as soon as it is finished.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::progress::Progress;

/// A run with a name for people.
#[derive(Debug, Clone)]
pub struct Task<S> {
    /// What its file begins with.
    pub key: String,
    /// Everything that determines the result.
    pub spec: S,
}

#[derive(Serialize, Deserialize)]
struct Kept<T> {
    spec: Value,
    result: T,
}

/// Where results are kept and how many threads make them.
#[derive(Debug, Clone)]
pub struct Workshop {
    /// The directory; finished runs of all experiments are in `runs/` below it, so that two experiments can share one.
    pub out: PathBuf,
    /// Runs at a time; each has one thread.
    pub threads: usize,
}

impl Workshop {
    /// The results of all tasks, in their order. A result that is on disk already, of the same specification, is not made again.
    ///
    /// # Errors
    /// The first error of a run, after the others under way have ended and been kept; or when a file cannot be written.
    pub fn all<S, T>(&self, label: &str, tasks: &[Task<S>], work: impl Fn(&S) -> Result<T> + Sync) -> Result<Vec<T>>
    where
        S: Serialize + Sync,
        T: Serialize + DeserializeOwned + Send,
    {
        let dir = self.out.join("runs");
        fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
        // Scattered, so that what is left is like what is done and the time left is an honest guess.
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by_key(|&i| (crc32fast::hash(tasks[i].key.as_bytes()), i));
        let next = AtomicUsize::new(0);
        let progress = Progress::new(label, tasks.len());
        let results: Mutex<Vec<Option<T>>> = Mutex::new(tasks.iter().map(|_| None).collect());
        let worker = || -> Result<()> {
            // Runs are many and the work inside one is small: a thread each is faster than sharing one run.
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
            loop {
                let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) else { return Ok(()) };
                let (result, made) = pool.install(|| one(&dir, &tasks[index], &work)).inspect_err(|_| {
                    next.store(tasks.len(), Ordering::Relaxed);
                })?;
                if let Ok(mut all) = results.lock() {
                    all[index] = Some(result);
                }
                progress.one(made);
            }
        };
        std::thread::scope(|scope| -> Result<()> {
            let workers: Vec<_> = (0..self.threads.max(1)).map(|_| scope.spawn(worker)).collect();
            let ends: Vec<Result<()>> = workers
                .into_iter()
                .map(|w| w.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a run panicked"))))
                .collect();
            ends.into_iter().collect()
        })?;
        let all = results.into_inner().map_err(|_| anyhow::anyhow!("a run panicked"))?;
        all.into_iter().map(|r| r.context("a run is missing")).collect()
    }
}

/// The result of a task, and whether it had to be made.
fn one<S, T>(dir: &Path, task: &Task<S>, work: &impl Fn(&S) -> Result<T>) -> Result<(T, bool)>
where
    S: Serialize,
    T: Serialize + DeserializeOwned,
{
    let spec = serde_json::to_value(&task.spec)?;
    // The checksum keeps runs apart whose names do not say all; the specification itself is compared.
    let checksum = crc32fast::hash(spec.to_string().as_bytes());
    let path = dir.join(format!("{}-{checksum:08x}.json", task.key));
    let kept = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Kept<T>>(&bytes).ok());
    if let Some(kept) = kept.filter(|k| k.spec == spec) {
        return Ok((kept.result, false));
    }
    let kept = Kept { spec, result: work(&task.spec).with_context(|| format!("in run {}", task.key))? };
    write(&path, &serde_json::to_vec(&kept)?)?;
    Ok((kept.result, true))
}

/// Writes a file so that it is there entirely or not at all.
///
/// # Errors
/// When the disk refuses.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    // Two processes may share a directory, and two threads may make the same run at the same time.
    static WRITTEN: AtomicUsize = AtomicUsize::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let part = path.with_extension(format!("{}-{number}.part", std::process::id()));
    fs::write(&part, bytes).with_context(|| format!("writing {}", part.display()))?;
    fs::rename(&part, path).with_context(|| format!("writing {}", path.display()))
}
