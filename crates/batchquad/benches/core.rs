//! The four numerical kernels of a round, the triangular solves inside them beside the matrix crate's, and the matrix product that
//! tells what the machine can do.
//!
//! `numpy_bench.py` beside this file does the same work on problems of the same distribution; `scripts/bench.py` runs both
//! and writes the table in `README.md`.
#![allow(missing_docs, clippy::unwrap_used)]

use std::{hint::black_box, time::Duration};

use batchquad::{
    Points,
    belief::{Gaussian, Gp, Kernel, Model, SquaredExponential, Surrogate, log_marginal_likelihood},
    numeric::{Jitter, Matrix, Order, Purpose, Stream, transpose_mul},
};
use cpu_time::ProcessTime;
use criterion::{
    BatchSize, Bencher, BenchmarkId, Criterion, SamplingMode, criterion_group, criterion_main,
    measurement::{Measurement, ValueFormatter, WallTime},
};
use faer::{Mat, Par, Side, linalg::triangular_solve::solve_lower_triangular_in_place};

/// Time of the processor, not of the clock on the wall: what else the machine does counts less.
struct CpuTime;

impl Measurement for CpuTime {
    type Intermediate = ProcessTime;
    type Value = Duration;

    fn start(&self) -> ProcessTime {
        ProcessTime::now()
    }

    fn end(&self, start: ProcessTime) -> Duration {
        start.elapsed()
    }

    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

const SIZES: [usize; 3] = [100, 400, 1600];
const DIM: usize = 4;
const QUERIES: usize = 64;
const APPENDED: usize = 16;
const SIDE: usize = 1024;

fn kernel() -> SquaredExponential {
    SquaredExponential::new(1.3, vec![0.9, 1.1, 1.3, 1.6]).unwrap()
}

fn normal_points(n: usize, stream: u64) -> Points {
    Points::new(DIM, Stream::new(n as u64, Purpose::Experiment, stream).normals(n * DIM)).unwrap()
}

fn log_values(x: &Points) -> Vec<f64> {
    x.rows().map(|x| -0.5 * x.iter().map(|v| (v - 0.3).powi(2)).sum::<f64>()).collect()
}

fn belief(n: usize) -> Surrogate {
    let (nodes, measure) = (normal_points(n, 0), Gaussian::standard(DIM).unwrap());
    let values = log_values(&nodes);
    Surrogate::with_kernel(Model::WsabiL, measure.into(), &nodes, &values, kernel(), Jitter::default()).unwrap()
}

fn fit(gp: &Gp) -> f64 {
    log_marginal_likelihood(gp.kernel(), gp.nodes(), gp.targets(), Jitter::default()).unwrap().value
}

fn core(c: &mut Criterion<CpuTime>) {
    for n in SIZES {
        let belief = belief(n);
        let gp = belief.gp();
        let queries = normal_points(QUERIES, 1);
        let new = normal_points(APPENDED, 2);
        let (cross, corner) = (gp.kernel().gram(gp.nodes(), &new).unwrap(), gp.kernel().gram(&new, &new).unwrap());
        let mut run = |item: &str, f: &mut dyn FnMut(&mut Bencher<CpuTime>)| {
            let mut group = c.benchmark_group(item);
            // Short equal samples, so that on a busy machine some of them run undisturbed.
            group.sampling_mode(SamplingMode::Flat).sample_size(if n > 1000 { 10 } else { 60 });
            group.bench_function(BenchmarkId::from_parameter(n), |b| f(b));
            group.finish();
        };
        run("fit", &mut |b| b.iter(|| fit(black_box(gp))));
        run("predict", &mut |b| b.iter(|| gp.predict(black_box(&queries), Order::Gradient).unwrap()));
        run("integrate", &mut |b| b.iter(|| black_box(&belief).estimate().unwrap()));
        // The triangular solves of a prediction, ours and the matrix crate's.
        let columns = gp.kernel().gram(gp.nodes(), &queries).unwrap();
        let gram = gp.kernel().gram(gp.nodes(), gp.nodes()).unwrap();
        let kernel = Mat::from_fn(n, n, |i, j| gram.get(i, j) + if i == j { 1e-6 } else { 0.0 });
        let factor = kernel.llt(Side::Lower).unwrap();
        run("solve", &mut |b| {
            let solve = |mut x| {
                gp.factor().half_solve(&mut x);
                x
            };
            b.iter_batched(|| columns.clone(), solve, BatchSize::PerIteration);
        });
        run("solve-faer", &mut |b| {
            let given = || Mat::from_fn(n, QUERIES, |i, j| columns.get(i, j));
            let solve = |mut x: Mat<f64>| {
                solve_lower_triangular_in_place(factor.L(), x.as_mut(), Par::Seq);
                x
            };
            b.iter_batched(given, solve, BatchSize::PerIteration);
        });
        run("append", &mut |b| {
            let given = || (cross.clone(), corner.clone());
            b.iter_batched(
                given,
                |(cross, corner)| gp.factor().append(cross, corner).unwrap(),
                BatchSize::PerIteration,
            );
        });
    }
    let [a, b] = [0, 1].map(|stream| {
        let entries = Stream::new(0, Purpose::Experiment, stream).normals(SIDE * SIDE);
        Matrix::from_fn(SIDE, SIDE, |i, j| entries[i * SIDE + j])
    });
    let mut group = c.benchmark_group("gemm");
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    group.bench_function(BenchmarkId::from_parameter(SIDE), |bencher| bencher.iter(|| transpose_mul(&a, &b)));
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .with_measurement(CpuTime)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .nresamples(1000)
        .without_plots();
    targets = core
}
criterion_main!(benches);
