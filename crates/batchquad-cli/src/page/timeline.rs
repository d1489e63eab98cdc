//! Which worker worked when.

use std::collections::BTreeMap;

use batchquad::{
    evaluate::clean,
    journal::{Event, Replay},
    types::{JobId, Outcome},
};
use batchquad_plot::{Axis, Chart, Figure, Rule, Segment, Segments};

use super::{
    Drawn,
    words::{count, noisy, unit_of_time},
};
use crate::output::duration;

/// A pause longer than this share of the time worked is drawn short.
const LONG: f64 = 0.1;
/// A pause shorter than this many seconds is not.
const PAUSE: f64 = 10.0;
/// More pauses than this are drawn without their lengths, which would cover each other.
const LABELS: usize = 5;
/// A pause that is drawn short has this share.
const SHORT: f64 = 0.02;
/// More workers than this have rows too narrow to see.
const MOST: usize = 120;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Choosing,
    Value,
    Failed,
}

struct Span {
    kind: Kind,
    worker: Option<String>,
    start: f64,
    end: f64,
    tip: String,
}

/// The timeline of workers; none without answers.
pub fn figure(replay: &Replay) -> Option<Drawn> {
    let mut spans = spans(replay);
    if !spans.iter().any(|s| s.kind != Kind::Choosing) {
        return None;
    }
    let pauses = shorten(&mut spans);
    let lanes = lanes(&mut spans);
    let total = spans.iter().map(|s| s.end).fold(0.0, f64::max).max(1e-3);
    let (divisor, unit) = unit_of_time(total);
    let names: Vec<String> = lanes.iter().take(MOST).cloned().collect();
    let row: BTreeMap<&str, usize> = names.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
    let layer = |kind: Kind| {
        let of_kind = spans.iter().filter(move |s| s.kind == kind);
        let segment = |span: &Span| {
            Some(Segment {
                row: *row.get(span.worker.as_deref()?)? as f64,
                start: span.start / divisor,
                end: span.end / divisor,
                tip: span.tip.clone(),
            })
        };
        Segments::new(of_kind.filter_map(segment))
    };
    let mut chart =
        Chart::new(Axis::linear("time").unit(unit).range(0.0, total / divisor), Axis::categories("", names.clone()))
            .with(layer(Kind::Choosing).colour(6).named("choosing"))
            .with(layer(Kind::Value).colour(0).named("evaluating"));
    if spans.iter().any(|s| s.kind == Kind::Failed) {
        chart = chart.with(layer(Kind::Failed).colour(1).named("failed"));
    }
    for (at, seconds) in &pauses {
        let rule = Rule::vertical(at / divisor);
        let labelled = pauses.len() <= LABELS;
        chart = chart.with(if labelled { rule.label(format!("pause {}", duration(*seconds))) } else { rule });
    }
    let workers = lanes.iter().filter(|lane| *lane != CHOOSING).count();
    let busy: f64 = spans.iter().filter(|s| s.kind != Kind::Choosing).map(|s| s.end - s.start).sum();
    let share = (100.0 * busy / (total * workers.max(1) as f64)).min(100.0);
    let mut caption = format!("{} busy {share:.0} % of the time.", count(workers, "worker,", "workers,"));
    if !pauses.is_empty() {
        caption.push_str(" Long pauses are drawn short.");
    }
    if lanes.len() > MOST {
        caption.push_str(&format!(" Only the first {MOST} rows are shown."));
    }
    let height = 20.0 * lanes.len().min(MOST) as f64;
    let label = format!("Timeline: {} over {}", count(workers, "worker", "workers"), duration(total));
    Some(Drawn::new(
        "timeline",
        &Figure::new(label, chart).width(920.0).panel_height(height.clamp(50.0, 700.0)),
        caption,
    ))
}

const CHOOSING: &str = "choosing";

/// All that took time, in seconds since 1970.
fn spans(replay: &Replay) -> Vec<Span> {
    let mut asked_at: BTreeMap<JobId, f64> = BTreeMap::new();
    let mut spans = Vec::new();
    for record in &replay.records {
        let at = record.at as f64 / 1000.0;
        match &record.event {
            Event::Asked(asked) => {
                asked_at.extend(asked.jobs.iter().map(|job| (job.id, at)));
                let tip =
                    format!("chose {} in {}", count(asked.jobs.len(), "point", "points"), duration(asked.seconds));
                let start = at - asked.seconds;
                spans.push(Span { kind: Kind::Choosing, worker: Some(CHOOSING.into()), start, end: at, tip });
            }
            Event::Told(told) | Event::Replaced(told) => {
                let (kind, words) = match &told.outcome {
                    Outcome::Value(value) => (Kind::Value, noisy(*value, told.sd)),
                    Outcome::Failed { kind, .. } => (Kind::Failed, format!("failed ({kind})")),
                };
                // An answer told by hand does not say how long it took: the time since it was asked stands for it.
                let start = match told.seconds {
                    s if s > 0.0 => at - s,
                    _ => asked_at.get(&told.id).copied().unwrap_or(at),
                };
                let worker = told.worker.as_deref().map(|name| format!("worker {}", clean(name)));
                let tip = format!("evaluation {}\n{words}\n{}", told.id, duration(at - start));
                spans.push(Span { kind, worker, start, end: at, tip });
            }
            _ => {}
        }
    }
    spans
}

/// Counts time from the beginning and shortens long pauses; gives where they are and how long they were.
fn shorten(spans: &mut [Span]) -> Vec<(f64, f64)> {
    let mut order: Vec<(f64, f64)> = spans.iter().map(|s| (s.start, s.end)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some(&(first, _)) = order.first() else { return Vec::new() };
    let mut gaps: Vec<(f64, f64)> = Vec::new();
    let (mut reached, mut worked) = (first, 0.0);
    for (start, end) in order {
        if start > reached {
            gaps.push((reached, start));
        }
        worked += (end - start.max(reached)).max(0.0);
        reached = reached.max(end);
    }
    gaps.retain(|(from, to)| to - from > (LONG * worked).max(PAUSE));
    let short = SHORT * worked;
    let moved = |t: f64| {
        let cut: f64 = gaps.iter().filter(|(_, to)| t >= *to).map(|(from, to)| to - from - short).sum();
        t - first - cut
    };
    for span in spans {
        (span.start, span.end) = (moved(span.start), moved(span.end));
    }
    gaps.iter().map(|(from, to)| (moved(*from) + short / 2.0, to - from)).collect()
}

/// Gives spans without a worker a free row, and names all rows in order.
fn lanes(spans: &mut [Span]) -> Vec<String> {
    let mut named: Vec<String> = spans.iter().filter_map(|s| s.worker.clone()).collect();
    named.sort_by_key(|name| natural(name));
    named.dedup();
    let mut order: Vec<usize> = (0..spans.len()).filter(|&i| spans[i].worker.is_none()).collect();
    order.sort_by(|&a, &b| spans[a].start.total_cmp(&spans[b].start));
    let mut free_from: Vec<f64> = Vec::new();
    for i in order {
        let lane = free_from.iter().position(|end| *end <= spans[i].start).unwrap_or_else(|| {
            free_from.push(0.0);
            free_from.len() - 1
        });
        free_from[lane] = spans[i].end;
        spans[i].worker = Some(format!("row {}", lane + 1));
    }
    named.extend((0..free_from.len()).map(|lane| format!("row {}", lane + 1)));
    named
}

/// `worker 10` comes after `worker 9`.
fn natural(name: &str) -> (bool, String, u64) {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (word, number) = name.split_at(name.len() - digits);
    (name != CHOOSING, word.to_owned(), number.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(worker: Option<&str>, start: f64, end: f64) -> Span {
        Span { kind: Kind::Value, worker: worker.map(String::from), start, end, tip: String::new() }
    }

    #[test]
    fn long_pauses_are_shortened_and_short_ones_stay() {
        let mut spans = vec![span(None, 100.0, 110.0), span(None, 110.5, 120.0), span(None, 5000.0, 5010.0)];
        let pauses = shorten(&mut spans);
        // Worked: 10 + 9.5 + 10 = 29.5; the pause of 4880 becomes 0.59.
        assert_eq!(pauses.len(), 1);
        assert!((pauses[0].1 - 4880.0).abs() < 1e-9 && (pauses[0].0 - (20.0 + 0.295)).abs() < 1e-9, "{pauses:?}");
        assert_eq!((spans[1].start, spans[1].end), (10.5, 20.0));
        assert!((spans[2].start - 20.59).abs() < 1e-9);
    }

    #[test]
    fn rows_are_in_natural_order_and_never_overlap() {
        let mut spans = vec![
            span(Some("worker 10"), 0.0, 1.0),
            span(Some("worker 9"), 0.0, 1.0),
            span(Some(CHOOSING), 0.0, 1.0),
            span(None, 0.0, 2.0),
            span(None, 1.0, 3.0),
            span(None, 2.0, 3.0),
        ];
        assert_eq!(lanes(&mut spans), [CHOOSING, "worker 9", "worker 10", "row 1", "row 2"]);
        assert_eq!(spans[5].worker.as_deref(), Some("row 1"));
    }
}
