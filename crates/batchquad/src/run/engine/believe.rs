//! From values to a belief: where the reference measure is, hyperparameters, the evidence.

use std::cell::OnceCell;

use super::{
    Current,
    basis::{Believed, Fingerprints, Repairs},
};
use crate::{
    belief::{
        any::{self, known},
        frame::{Frame, Place},
        gp::FitOptions,
        kernel::SquaredExponential,
        log,
        measure::Gaussian,
        nodes::Nodes,
        surrogate::Surrogate,
        warp::Model,
    },
    error::{Error, Result},
    infer::posterior::closed_moments,
    numeric::normal,
    points::Points,
    run::settings::{Reference, Settings, SurrogateChoice},
};

/// While there are at most this many values, every refit searches from several starts; later only when they have grown
/// by [`Settings::refit_growth`]. [`MATH.md` §8](crate::math).
const CHEAP: usize = 40;

/// Lengthscales are searched for when the values have grown by this share: until then their evidence hardly moves.
const FEW_NEW: f64 = 0.05;

/// A belief rests on at most so many nodes: its time grows with their cube and its memory with their square.
pub const MOST_NODES: usize = 1500;

/// … and at most so many where points are only chosen from it, while the search for hyperparameters goes on elsewhere.
const MOST_ROUGH: usize = 512;

/// … or where an acquisition is climbed, which is looked at thousands of times for a batch.
pub(super) const MOST_CLIMBED: usize = 400;

/// How often the reference measure may move for the same values.
const MOVES: usize = 2;

/// The measure moves when the place it should follow is this many nats away: less makes no difference to the integrand,
/// and hyperparameters found in one frame serve in the next.
const SETTLED: f64 = 0.1;

/// Beliefs from earlier, which make a new one cheap.
#[derive(Clone, Copy)]
pub(super) struct Memories<'a> {
    /// The one that the last batch was chosen from: where the search begins.
    pub(super) last: Option<&'a Believed>,
    /// Those that somebody remembers; each counts for its own values only.
    pub(super) recalled: &'a [Believed],
}

/// Latent points with their log-likelihoods.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) rows: Vec<Vec<f64>>,
    pub(super) logs: Vec<f64>,
    /// The standard deviations of their noise, where they were given.
    pub(super) sds: Vec<Option<f64>>,
    /// What the parameters are as functions of their latent coordinates.
    pub(super) scales: Vec<log::Scale>,
    /// How many of them, the first ones, come from elsewhere.
    pub(super) imported: usize,
    /// Whether a rough belief will do.
    pub(super) rough: Option<Rough>,
    /// What a belief rests on, once that is worked out.
    pub(super) distinct: OnceCell<Nodes>,
}

/// What a rough belief is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rough {
    /// To choose points with the hyperparameters of an earlier one.
    Held,
    /// To climb an acquisition.
    Climbed,
}

impl Values {
    fn nodes(&self, settings: &Settings) -> Result<Nodes> {
        if let Some(nodes) = self.distinct.get() {
            return Ok(nodes.clone());
        }
        let most = match self.rough {
            None => MOST_NODES,
            Some(Rough::Held) => MOST_ROUGH,
            Some(Rough::Climbed) => MOST_CLIMBED,
        };
        let nodes = Nodes::noisy(&self.rows, &self.logs, &self.sds, settings.noise_sd)?.thinned(most)?;
        Ok(self.distinct.get_or_init(|| nodes).clone())
    }

    /// Every other value, where at least two thirds of them come from elsewhere and half of them determine a quadratic. Whether a run has arrived is
    /// told by how far the posterior moves from one batch to the next. Values from elsewhere have no batches: this is the one before.
    fn half(&self, settings: &Settings) -> Result<Option<Nodes>> {
        let (n, dim) = (self.rows.len(), self.rows.first().map_or(0, Vec::len));
        if 3 * self.imported < 2 * n || n < (dim + 1) * (dim + 2) {
            return Ok(None);
        }
        let rows: Vec<Vec<f64>> = self.rows.iter().step_by(2).cloned().collect();
        let logs: Vec<f64> = self.logs.iter().step_by(2).copied().collect();
        let sds: Vec<Option<f64>> = self.sds.iter().step_by(2).copied().collect();
        Nodes::noisy(&rows, &logs, &sds, settings.noise_sd)?.thinned(MOST_NODES / 2).map(Some)
    }
}

/// The belief about `dim` parameters from values.
pub(super) fn believe(
    settings: &Settings,
    (dim, seed): (usize, u64),
    values: &Values,
    memories: Memories<'_>,
) -> Result<Current> {
    match settings.model(dim) {
        Some(model) => warped(settings, model, dim, values, memories),
        None => match logarithmic(settings, seed, values, memories) {
            // What one belief cannot fit the other may.
            Err(Error::Numerical { .. } | Error::NotPositiveDefinite { .. })
                if settings.surrogate == SurrogateChoice::Auto =>
            {
                warped(settings, Model::WsabiL, dim, values, memories)
            }
            found => found,
        },
    }
}

/// The belief with the hyperparameters of an earlier one, which rests on other values; none where these cannot serve for others.
pub(super) fn hold(
    settings: &Settings,
    (dim, seed): (usize, u64),
    values: &Values,
    earlier: &Believed,
) -> Result<Option<Current>> {
    let mut held = earlier.clone();
    if let Some(recipe) = &earlier.log {
        let Some(transferable) = recipe.for_other_values() else { return Ok(None) };
        held.log = Some(Box::new(transferable));
    }
    // Taken for the belief of these values, and never again.
    held.fingerprint = fingerprint(settings, values, earlier)?;
    let memories = Memories { last: Some(&held), recalled: &[] };
    let mut current = match settings.model(dim) {
        Some(model) => warped(settings, model, dim, values, memories)?,
        None if earlier.log.is_some() => logarithmic(settings, seed, values, memories)?,
        None => warped(settings, Model::WsabiL, dim, values, memories)?,
    };
    current.believed.fingerprint = !current.believed.fingerprint;
    // The whole recipe is where the next search begins.
    current.believed.log.clone_from(&earlier.log);
    current.held = true;
    Ok(Some(current))
}

/// The checksum of values as a belief like `like` has it.
fn fingerprint(settings: &Settings, values: &Values, like: &Believed) -> Result<u32> {
    let nodes = values.nodes(settings)?;
    Ok(match like.log {
        Some(_) => Fingerprints::noisy(settings, &nodes.points, &nodes.log_means, &nodes.sds)?.now,
        None => Fingerprints::new(settings, &nodes.points, &nodes.log_values)?.now,
    })
}

/// The belief among those that somebody remembers which rests on these very values.
pub(super) fn remembered<'a>(settings: &Settings, values: &Values, known: &'a [Believed]) -> Option<&'a Believed> {
    let nodes = values.nodes(settings).ok()?;
    let of_log = Fingerprints::noisy(settings, &nodes.points, &nodes.log_means, &nodes.sds).ok()?;
    let of_root = Fingerprints::new(settings, &nodes.points, &nodes.log_values).ok()?;
    let is_it = |b: &&Believed| if b.log.is_some() { of_log.are_of(b) } else { of_root.are_of(b) };
    known.iter().rev().find(is_it)
}

fn logarithmic(
    settings: &Settings,
    seed: u64,
    values: &Values,
    Memories { last, recalled }: Memories<'_>,
) -> Result<Current> {
    let nodes = values.nodes(settings)?;
    let (merged_values, values_left_out) = (nodes.merged, nodes.left_out);
    let contradictory = if settings.noise_sd.is_some() { 0 } else { nodes.contradictory - nodes.explained };
    let fingerprints = Fingerprints::noisy(settings, &nodes.points, &nodes.log_means, &nodes.sds)?;
    let known = known(nodes, settings.noise_sd)?.on(&values.scales);
    let same = last.into_iter().chain(recalled.iter().rev()).find(|b| fingerprints.are_of(b));
    let same = same.and_then(|b| b.log.as_ref());
    let belief = match same {
        Some(recipe) => log::recall(&known, recipe, values.rough.is_some(), seed)?,
        None => {
            let halved = match last {
                Some(_) => None,
                None => halved(settings, seed, values)?,
            };
            log::search(&known, last.and_then(|b| b.log.as_deref()).or(halved.as_ref()), seed)?
        }
    };
    let estimate = belief.estimate();
    let believed = Believed {
        values: values.logs.len(),
        fingerprint: fingerprints.now,
        sigma2: belief.sigma2(),
        lengthscales: belief.lengthscales().to_vec(),
        place: None,
        cuts: Vec::new(),
        searched: 0,
        fitted: 0,
        log_z: Some(estimate.log_z).filter(|v| v.is_finite()),
        log_z_sd: Some(estimate.log_z_sd).filter(|v| v.is_finite()),
        repairs: Repairs {
            merged_values,
            values_left_out,
            // Values that scatter are no contradiction where noise is known of, or found.
            contradictory_nodes: if belief.noise() > 0.05 { 0 } else { contradictory },
            ..Repairs::default()
        },
        log: Some(Box::new(belief.recipe.clone())),
    };
    let (model_sd, residuals) = (belief.model_sd(), belief.residuals());
    Ok(Current { surrogate: belief.into(), estimate, model_sd, residuals, believed, agreement: None, held: false })
}

/// What half of the values lead to, where that can stand for the batch before.
fn halved(settings: &Settings, seed: u64, values: &Values) -> Result<Option<log::Recipe>> {
    let Some(nodes) = values.half(settings)? else { return Ok(None) };
    if !nodes.log_values.iter().any(|l| l.is_finite()) {
        return Ok(None);
    }
    let known = known(nodes, settings.noise_sd)?.on(&values.scales);
    // A search that begins with nothing calls no posterior found, since no earlier best value is there to compare with. The second one may.
    let searched = log::search(&known, None, seed).and_then(|first| log::search(&known, Some(&first.recipe), seed));
    match searched {
        Ok(belief) => Ok(Some(belief.recipe)),
        Err(Error::Interrupted) => Err(Error::Interrupted),
        Err(_) => Ok(None),
    }
}

fn warped(
    settings: &Settings,
    model: Model,
    dim: usize,
    values: &Values,
    Memories { last, recalled }: Memories<'_>,
) -> Result<Current> {
    let Nodes { points, log_values, merged, contradictory, left_out, .. } = values.nodes(settings)?;
    let data = Data { settings, warp: model, dim, nodes: points, log_values, told: values.logs.len() };
    let fingerprints = Fingerprints::new(settings, &data.nodes, &data.log_values)?;
    let found = match last.into_iter().chain(recalled.iter().rev()).find(|b| fingerprints.are_of(b)) {
        Some(known) => data.recall(known)?,
        None => data.search(last)?,
    };
    let Fitted { surrogate, place, searched, fitted, at_bound } = found;
    let model = surrogate.estimate()?;
    let residuals = surrogate.residuals();
    let estimate = model.widened(surrogate.jackknife(&residuals)?);
    let estimate = surrogate.unseen(&model)?.map_or(estimate, |unseen| estimate.widened(unseen));
    let (kernel, jitter) = (surrogate.kernel(), surrogate.jitter());
    let believed = Believed {
        values: values.logs.len(),
        fingerprint: fingerprints.now,
        sigma2: kernel.sigma2(),
        lengthscales: kernel.lengthscales().to_vec(),
        place,
        cuts: Vec::new(),
        searched,
        fitted,
        log_z: Some(estimate.log_z).filter(|v| v.is_finite()),
        log_z_sd: Some(estimate.log_z_sd).filter(|v| v.is_finite()),
        repairs: Repairs {
            jitter_rungs: jitter.rungs,
            largest_jitter: jitter.largest,
            clamped_variance: model.clamped,
            lengthscale_at_bound: at_bound,
            merged_values: merged,
            contradictory_nodes: contradictory,
            values_left_out: left_out,
        },
        log: None,
    };
    let (surrogate, model_sd) = (surrogate.into(), model.log_z_sd);
    Ok(Current { surrogate, estimate, model_sd, residuals, believed, agreement: None, held: false })
}

/// The belief with the frame and the hyperparameters of an earlier one.
pub(super) fn recall(settings: &Settings, dim: usize, values: &Values, earlier: &Believed) -> Result<any::Earlier> {
    let nodes = values.nodes(settings)?;
    if let Some(recipe) = &earlier.log {
        let known = known(nodes, settings.noise_sd)?.on(&values.scales);
        return Ok(any::Earlier::Log { known: Box::new(known), recipe: recipe.clone() });
    }
    let data = Data {
        settings,
        warp: settings.model(dim).unwrap_or_default(),
        dim,
        nodes: nodes.points,
        log_values: nodes.log_values,
        told: values.logs.len(),
    };
    Ok(any::Earlier::Warped(Box::new(data.recall(earlier)?.surrogate)))
}

/// Distinct latent nodes with their log-likelihoods.
struct Data<'a> {
    settings: &'a Settings,
    warp: Model,
    dim: usize,
    nodes: Points,
    log_values: Vec<f64>,
    /// How many values there are behind the nodes.
    told: usize,
}

struct Fitted {
    surrogate: Surrogate,
    place: Option<Place>,
    searched: usize,
    fitted: usize,
    at_bound: bool,
}

impl Data<'_> {
    fn frame(&self, place: Option<&Place>) -> Result<Frame> {
        place.map_or_else(|| Ok(Gaussian::standard(self.dim)?.into()), Frame::at)
    }

    /// The data as a belief in `frame` sees them.
    fn seen_from(&self, frame: &Frame) -> Result<(Points, Vec<f64>)> {
        let logs = self.nodes.rows().zip(&self.log_values).map(|(u, l)| l + frame.log_ratio(u)).collect();
        Ok((frame.enter(&self.nodes)?, logs))
    }

    /// The belief of before, from the same data.
    fn recall(&self, known: &Believed) -> Result<Fitted> {
        let frame = self.frame(known.place.as_ref())?;
        let (nodes, logs) = self.seen_from(&frame)?;
        let kernel = SquaredExponential::new(known.sigma2, known.lengthscales.clone())?;
        let jitter = self.settings.fit_options().jitter;
        let surrogate = Surrogate::with_kernel(self.warp, frame, &nodes, &logs, kernel, jitter)?;
        let Believed { place, searched, fitted, repairs, .. } = known.clone();
        Ok(Fitted { surrogate, place, searched, fitted, at_bound: repairs.lengthscale_at_bound })
    }

    /// The belief with the frame and the lengthscales of the last one, where there is nothing to search for: few values are new, none of them
    /// surprises, and the reference measure stays.
    fn keep(&self, last: &Believed, follows: bool) -> Result<Option<Fitted>> {
        let new = self.told.saturating_sub(last.fitted);
        if self.nodes.len() <= CHEAP || new as f64 >= FEW_NEW * last.fitted as f64 || (last.place.is_some() && !follows)
        {
            return Ok(None);
        }
        let frame = self.frame(last.place.as_ref())?;
        let (nodes, logs) = self.seen_from(&frame)?;
        let how = (&last.lengthscales[..], self.settings.fit_options().jitter);
        let kept = Surrogate::kept(self.warp, frame, &nodes, &logs, how, new)?;
        let stays = |surrogate: &Surrogate| !follows || self.next_place(surrogate).is_none();
        Ok(kept.filter(stays).map(|surrogate| Fitted {
            surrogate,
            place: last.place.clone(),
            searched: last.searched,
            fitted: last.fitted,
            at_bound: last.repairs.lengthscale_at_bound,
        }))
    }

    /// A new belief: the last frame and hyperparameters are where the search for better ones begins.
    fn search(&self, last: Option<&Believed>) -> Result<Fitted> {
        let (model, options) = (self.warp, self.settings.fit_options());
        if let Some(known) = &self.settings.known_kernel {
            let kernel = known.scaled(model, self.log_values.iter().copied().fold(f64::NEG_INFINITY, f64::max))?;
            let frame = self.frame(None)?;
            let surrogate =
                Surrogate::with_kernel(model, frame, &self.nodes, &self.log_values, kernel, options.jitter)?;
            return Ok(Fitted { surrogate, place: None, searched: 0, fitted: 0, at_bound: false });
        }
        let searched = last.map_or(0, |b| b.searched);
        let grown = self.nodes.len() as f64 >= self.settings.refit_growth * searched as f64;
        let thorough = self.nodes.len() <= CHEAP || grown;
        let starts = if thorough { options.starts } else { Vec::new() };
        let options = FitOptions { starts, ..options };
        let follows = self.settings.reference == Reference::Moving
            && model.warp().is_positive()
            && self.carriers() >= (self.dim + 1) as f64;
        if !thorough
            && let Some(last) = last
            && let Some(kept) = self.keep(last, follows)?
        {
            return Ok(kept);
        }
        let mut place = last.and_then(|b| b.place.clone()).filter(|_| follows);
        let mut warm = match last {
            Some(b) => {
                let growth = self.frame(b.place.as_ref())?.log_growth();
                Some((SquaredExponential::new(b.sigma2, b.lengthscales.clone())?, growth))
            }
            None => None,
        };
        let mut moves = 0;
        loop {
            let frame = self.frame(place.as_ref())?;
            let (nodes, logs) = self.seen_from(&frame)?;
            let growth = frame.log_growth();
            let start = warm.as_ref().map(|(kernel, from)| rescaled(kernel, from - growth)).transpose()?;
            let surrogate = Surrogate::fit(model, frame, &nodes, &logs, &options, start.as_ref())?;
            let next = if follows && moves < MOVES { self.next_place(&surrogate) } else { None };
            let Some(next) = next else {
                let at_bound = surrogate.at_bound();
                let searched = if thorough { self.nodes.len() } else { searched };
                return Ok(Fitted { surrogate, place, searched, fitted: self.told, at_bound });
            };
            moves += 1;
            warm = Some((surrogate.kernel().clone(), growth));
            place = Some(next);
        }
    }

    /// How many nodes carry the tempered posterior `p = ℓ^½ N(u; 0, I)`: `(Σp)²/Σp²` over the nodes.
    fn carriers(&self) -> f64 {
        let log_prior = |u: &[f64]| u.iter().map(|u| normal::log_density(*u)).sum::<f64>();
        let logs: Vec<f64> = self.nodes.rows().zip(&self.log_values).map(|(u, l)| 0.5 * l + log_prior(u)).collect();
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let shares: Vec<f64> = logs.iter().map(|l| (l - top).exp()).collect();
        shares.iter().sum::<f64>().powi(2) / shares.iter().map(|s| s * s).sum::<f64>()
    }

    /// Where the measure should be instead, if that is far enough to matter. It stays where no place can be found.
    fn next_place(&self, surrogate: &Surrogate) -> Option<Place> {
        let (mean, covariance) = closed_moments(surrogate).ok()?;
        let place = Place::tempered(&mean, &covariance).ok()?;
        let far = surrogate.frame().divergence(&place).is_ok_and(|nats| nats > SETTLED);
        (far && Frame::at(&place).is_ok()).then_some(place)
    }
}

/// A kernel with lengthscales multiplied by `exp(log_factor)`.
fn rescaled(kernel: &SquaredExponential, log_factor: f64) -> Result<SquaredExponential> {
    let factor = log_factor.exp();
    SquaredExponential::new(kernel.sigma2(), kernel.lengthscales().iter().map(|l| l * factor).collect())
}
