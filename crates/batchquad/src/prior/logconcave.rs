//! Tails of log-concave densities: one quadrature and one root finder for all of them.
//!
//! The gamma density in `log x`, the beta density in `logit x` and the normal density are log-concave. Beyond a point
//! on the falling side such a density is `D·exp(−G(t))`, with `G` convex, `G(0) = 0`, so its tail is
//! `log D + log ∫ e^{−G}`: the size is kept in a logarithm and the integral is of order one over a slope, to be had to
//! a few ulps by quadrature whatever the parameters. Series and continued fractions would each serve a part of the
//! parameter space only.

/// Where `e^{−G}` is cut off: by convexity the rest is below `e^{−40}` of the integral.
const NEGLIGIBLE: f64 = 40.0;

/// How often a panel may be halved before its value is taken as it is.
const MAX_DEPTH: u32 = 12;

/// Nodes of the 15-point Kronrod rule on [−1, 1], the positive half and 0; those at odd places are the 7-point Gauss
/// nodes.
const NODES: [f64; 8] = [
    0.991_455_371_120_812_6,
    0.949_107_912_342_758_5,
    0.864_864_423_359_769_1,
    0.741_531_185_599_394_5,
    0.586_087_235_467_691_1,
    0.405_845_151_377_397_2,
    0.207_784_955_007_898_48,
    0.0,
];
const KRONROD: [f64; 8] = [
    0.022_935_322_010_529_224,
    0.063_092_092_629_978_56,
    0.104_790_010_322_250_19,
    0.140_653_259_715_525_92,
    0.169_004_726_639_267_9,
    0.190_350_578_064_785_42,
    0.204_432_940_075_298_89,
    0.209_482_141_084_727_82,
];
const GAUSS: [f64; 4] =
    [0.129_484_966_168_869_7, 0.279_705_391_489_276_64, 0.381_830_050_505_118_9, 0.417_959_183_673_469_4];

/// `∫₀ᴸ exp(−g(t)) dt` for convex `g` with `g(0) = 0`, increasing; `L` may be infinite.
///
/// `width` is a guess of the length over which `g` grows by one. Cost: 50 to 500 evaluations of `g`.
pub(crate) fn integral(g: impl Fn(f64) -> f64, limit: f64, width: f64) -> f64 {
    let mut end = width.min(limit);
    while end < limit && g(end) < NEGLIGIBLE {
        end *= 2.0;
    }
    while end > f64::MIN_POSITIVE && g(0.5 * end) >= NEGLIGIBLE {
        end *= 0.5;
    }
    end = end.min(limit);
    let f = |t: f64| (-g(t)).exp();
    // Panels that double in length: `g` has features of unit length near 0 even when it takes thousands to decay. Near
    // ones come first, so that the far ones are measured against the whole.
    let doublings = if end > 4.0 && end.is_finite() { end.log2().ceil() as i32 } else { 2 };
    let mut high = end * 0.5_f64.powi(doublings);
    let mut total = panel(&f, 0.0, high, 0.0, MAX_DEPTH);
    for _ in 0..doublings {
        total += panel(&f, high, 2.0 * high, total, MAX_DEPTH);
        high *= 2.0;
    }
    total
}

/// One panel, halved until the 7-point and the 15-point rule agree.
fn panel(f: &impl Fn(f64) -> f64, low: f64, high: f64, total: f64, depth: u32) -> f64 {
    let (mid, half) = (0.5 * (low + high), 0.5 * (high - low));
    let (mut kronrod, mut gauss) = (KRONROD[7] * f(mid), 0.0);
    gauss += GAUSS[3] * f(mid);
    for i in 0..7 {
        let pair = f(mid - half * NODES[i]) + f(mid + half * NODES[i]);
        kronrod += KRONROD[i] * pair;
        if i % 2 == 1 {
            gauss += GAUSS[i / 2] * pair;
        }
    }
    let value = half * kronrod;
    // The difference is the error of the 7-point rule; that of the 15-point rule is about its 1.5th power or less.
    if depth == 0 || half * (kronrod - gauss).abs() <= 1e-11 * (total + value) {
        value
    } else {
        panel(f, low, mid, total, depth - 1) + panel(f, mid, high, total, depth - 1)
    }
}

/// The root of an increasing function, by Newton's rule kept inside a shrinking bracket.
///
/// `f` gives value and slope. A Newton step of at most `small` is the last one: the convergence is quadratic, so
/// `small` has to be some `1e-8` of the length over which `f` bends, and asking for less would chase rounding errors.
/// If there is no root in `[low, high]` the nearer end is returned.
pub(crate) fn increasing_root(
    f: impl Fn(f64) -> (f64, f64),
    (mut low, mut high): (f64, f64),
    start: f64,
    small: f64,
) -> f64 {
    let mut x = start.clamp(low, high);
    for _ in 0..200 {
        let (value, slope) = f(x);
        let newton = x - value / slope;
        if (newton - x).abs() <= small {
            return newton.clamp(low, high);
        }
        if value < 0.0 {
            low = x;
        } else {
            high = x;
        }
        x = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        if x <= low || x >= high {
            break;
        }
    }
    x
}
