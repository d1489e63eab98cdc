//! Whether a value belongs to a peak that was found or to another one: whether there is a valley between them. `MATH.md` §15.

use serde::{Deserialize, Serialize};

use super::{known::Known, peak::Peak};
use crate::points::square_distance;

/// By how many nats a valley is lower at the least, beside so many standard deviations of the noise.
const VALLEY: f64 = 1.0;
const SURE: f64 = 4.0;

/// By what share of a value's depth, and how many nats at the least, the place to ask at is deeper by the peak's normal approximation.
const DEEPER: (f64, f64) = (0.1, 5.0);

/// The place to ask at is within this part of the way from the peak.
const WAY: (f64, f64) = (0.1, 0.8);

/// A value that does not belong to so many peaks, the nearest by their own standard deviations, belongs to another one.
const PEAKS: usize = 2;

/// The most questions that are asked about one value and one peak.
const LINKS: usize = 4;

/// Nodes closer than this, in latent coordinates, are where a question was asked. At the ends of a bounded prior a point returns only to so many digits.
const THERE: f64 = 1e-4;

/// A question that has no answer when so many values have come since will hardly have one: the evaluation may have failed.
const LOST: usize = 32;

/// What is known of the straight way from a value up to a peak.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Link {
    /// There is no valley: the value belongs to the peak.
    Joined,
    /// There is a valley: the value belongs to another peak.
    Apart,
    /// Nothing yet.
    Unknown,
}

/// Whether there is a valley between a value and a peak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Question {
    /// The number of the value.
    of: usize,
    /// The place of the peak in the order of their distance from the value.
    rank: usize,
    /// The latent point between them at which the valley would be.
    pub(crate) at: Vec<f64>,
    /// The height of the peak, and that of the point by its normal approximation.
    top: f64,
    expected: f64,
    /// The standard deviation of the noise that was fitted there.
    noise: f64,
    /// How many values there were when it was asked.
    asked: usize,
    /// The number of the value that was found there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<usize>,
}

/// What was asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Questions(Vec<Question>);

impl Questions {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that wait for an answer with so many values.
    pub(crate) fn open(&self, values: usize) -> impl Iterator<Item = &Question> {
        self.0.iter().filter(move |q| q.answer.is_none() && values < q.asked + LOST)
    }

    /// Looks for answers among the values that have come since.
    pub(crate) fn answer(&mut self, known: &Known) {
        for question in self.0.iter_mut().filter(|q| q.answer.is_none()) {
            let there = |&i: &usize| square_distance(known.nodes.row(i), &question.at) < THERE * THERE;
            question.answer = (question.asked..known.len()).find(there);
        }
    }

    /// What the answers to the questions about a value tell, where there are so many peaks.
    pub(crate) fn link(&self, known: &Known, value: usize, peaks: usize) -> Link {
        let links = (0..peaks.min(PEAKS)).map(|rank| self.link_to(known, value, rank));
        links.fold(Link::Apart, |so_far, link| if so_far == Link::Apart { link } else { so_far })
    }

    /// The same for the peak with one place in the order of their distance.
    fn link_to(&self, known: &Known, value: usize, rank: usize) -> Link {
        let height = |i: usize| known.best - known.depth[i];
        let mut from = value;
        for _ in 0..LINKS {
            let Some((question, there)) = self.about(from, rank).and_then(|q| Some((q, q.answer?))) else {
                return Link::Unknown;
            };
            let unsure = SURE * (2.0_f64.sqrt() * question.noise).hypot(known.noise(from)).hypot(known.noise(there));
            if height(there) < height(from).min(question.top) - VALLEY - unsure {
                return Link::Apart;
            }
            if question.top - question.expected < deeper(question.top - height(there)) {
                return Link::Joined;
            }
            from = there;
        }
        Link::Joined
    }

    /// How many answers there are that show no valley. Where there are `several` peaks there may well be more: then only values count that are known to
    /// belong to one.
    pub(crate) fn reassuring(&self, known: &Known, several: bool) -> usize {
        let begins = |q: &Question| self.0.iter().all(|p| p.answer != Some(q.of));
        let shows = |q: &&Question| match self.link_to(known, q.of, q.rank) {
            Link::Apart => false,
            Link::Joined => !several || begins(q),
            Link::Unknown => !several && q.answer.is_some(),
        };
        self.0.iter().filter(shows).count()
    }

    /// Whether anything was asked about a value, by its number.
    pub(crate) fn begun(&self, value: usize) -> bool {
        self.0.iter().any(|q| q.of == value)
    }

    fn about(&self, value: usize, rank: usize) -> Option<&Question> {
        self.0.iter().find(|q| q.of == value && q.rank == rank)
    }

    /// Asks about a value, by its number among all. The place is on the straight way, in the coordinates of the peak, up to its best value,
    /// where the normal approximation alone is a little lower than the value. Along this way the density of a peak rises, whatever its tails are like,
    /// unless it is bent.
    pub(crate) fn ask(&mut self, value: usize, known: &Known, peaks: &[Peak]) {
        let away = |p: &Peak| p.view.enter(known.nodes.row(value)).iter().map(|x| x * x).sum::<f64>();
        let mut order: Vec<&Peak> = peaks.iter().collect();
        order.sort_by(|a, b| away(a).total_cmp(&away(b)));
        let unknown = |&rank: &usize| self.link_to(known, value, rank) == Link::Unknown;
        let Some((rank, peak)) = (0..order.len().min(PEAKS)).find(unknown).map(|rank| (rank, order[rank])) else {
            return;
        };
        let mut of = value;
        while let Some(question) = self.about(of, rank) {
            let Some(there) = question.answer else { return };
            of = there;
        }
        let from = peak.view.enter(known.nodes.row(of));
        let own = &peak.process.data;
        let Some(best) = (0..own.targets.len()).max_by(|&a, &b| own.targets[a].total_cmp(&own.targets[b])) else {
            return;
        };
        let (end, top) = (own.nodes.row(best), peak.known.best + own.targets[best]);
        let length2 = square_distance(end, &from);
        let wanted = deeper(top - (known.best - known.depth[of]));
        let part = (2.0 * wanted / length2).sqrt().clamp(WAY.0, WAY.1);
        let at: Vec<f64> = end.iter().zip(&from).map(|(e, f)| e + part * (f - e)).collect();
        let expected = top - 0.5 * part * part * length2;
        self.0.push(Question {
            of,
            rank,
            at: peak.view.leave(&at),
            top,
            expected,
            noise: peak.process.hyper.noise,
            asked: known.len(),
            answer: None,
        });
    }
}

/// How far below the top the normal approximation of a peak is to be, at a place to ask about a value of this depth.
fn deeper(depth: f64) -> f64 {
    depth.max(0.0) + DEEPER.1.max(DEEPER.0 * depth)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{LogBelief, search},
        *,
    };
    use crate::points::Points;

    fn known(places: &[f64], log_likelihood: impl Fn(f64) -> f64) -> Known {
        let nodes: Vec<Vec<f64>> = places.iter().map(|u| vec![*u]).collect();
        let logs: Vec<f64> = places.iter().map(|u| log_likelihood(*u)).collect();
        let count = places.len();
        Known::new(Points::from_rows(&nodes).unwrap(), &logs, vec![0.0; count], vec![false; count]).unwrap()
    }

    /// What is learnt about the value at `far` by asking until there is an answer, beside values around a peak at 0.3, and with how many questions.
    fn learnt(log_likelihood: impl Fn(f64) -> f64 + Copy, far: f64) -> (Link, usize) {
        let mut places: Vec<f64> = (0..14).map(|i| 0.3 + 0.35 * (1.7 * f64::from(i)).sin()).collect();
        let value = places.len();
        let belief: LogBelief = search(&known(&places, log_likelihood), None, 1).unwrap();
        places.push(far);
        let mut questions = Questions::default();
        for asked in 0..=LINKS {
            let known = known(&places, log_likelihood);
            questions.answer(&known);
            let link = questions.link(&known, value, 1);
            if link != Link::Unknown {
                return (link, asked);
            }
            questions.ask(value, &known, &belief.peaks);
            let open: Vec<&Question> = questions.open(known.len()).collect();
            assert_eq!(open.len(), 1);
            places.push(open[0].at[0]);
        }
        (Link::Unknown, LINKS)
    }

    fn bell(u: f64, mean: f64) -> f64 {
        -0.5 * ((u - mean) / 0.1).powi(2)
    }

    #[test]
    fn a_value_beyond_a_valley_belongs_to_another_peak() {
        let two = |u: f64| (bell(u, 0.3).exp() + bell(u, -1.7).exp()).ln().max(-400.0);
        assert_eq!(learnt(two, -1.5), (Link::Apart, 1));
        // The other peak itself, and the slope behind it.
        assert_eq!(learnt(two, -1.7).0, Link::Apart);
        assert_eq!(learnt(two, -2.0).0, Link::Apart);
    }

    #[test]
    fn a_value_on_a_heavy_tail_belongs_to_its_peak() {
        let tail = |u: f64| -2.5 * (1.0 + ((u - 0.3) / 0.1).powi(2) / 4.0).ln();
        for far in [-2.0, -1.0, 1.5, 2.5] {
            assert_eq!(learnt(tail, far).0, Link::Joined, "{far}");
        }
        // A likelihood that falls off like that of a logistic regression.
        let straight = |u: f64| -10.0 * (1.0 + ((u - 0.3) / 0.1).powi(2)).sqrt();
        assert_eq!(learnt(straight, -2.0).0, Link::Joined);
    }

    #[test]
    fn a_question_without_an_answer_is_given_up() {
        let places: Vec<f64> = (0..14).map(|i| 0.3 + 0.35 * (1.7 * f64::from(i)).sin()).collect();
        let known = known(&places, |u| bell(u, 0.3));
        let belief = search(&known, None, 1).unwrap();
        let mut questions = Questions::default();
        questions.ask(3, &known, &belief.peaks);
        assert_eq!(questions.open(known.len()).count(), 1);
        // It is not asked twice, and nobody waits for ever.
        questions.ask(3, &known, &belief.peaks);
        assert_eq!(questions.open(known.len()).count(), 1);
        assert_eq!(questions.open(known.len() + LOST).count(), 0);
    }
}
