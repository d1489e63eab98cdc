//! Work in pieces, on several threads where that pays.
//!
//! The pieces are the same however many threads there are, so the results are too.

use rayon::prelude::*;

/// Steps of about a nanosecond below which handing work to other threads costs more than it saves.
const WORTH: usize = 150_000;

/// `f` of each piece of `size` numbers, one after the other in one list; `cost` is how many steps all of them take.
///
/// # Errors
/// The first of `f`.
pub(crate) fn pieces<T: Send, E: Send>(
    data: &[f64],
    size: usize,
    cost: usize,
    f: impl Fn(&[f64]) -> Result<Vec<T>, E> + Sync,
) -> Result<Vec<T>, E> {
    if cost < WORTH || data.len() <= size {
        let mut all = Vec::new();
        for piece in data.chunks(size) {
            all.extend(f(piece)?);
        }
        return Ok(all);
    }
    let parts: Vec<Vec<T>> = data.par_chunks(size).map(&f).collect::<Result<_, E>>()?;
    Ok(parts.into_iter().flatten().collect())
}

/// `f` of each of some things; `cost` is how many steps each of them takes.
///
/// # Errors
/// The first of `f`.
pub(crate) fn each<A: Sync, T: Send, E: Send>(
    things: &[A],
    cost: usize,
    f: impl Fn(&A) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    if things.len() < 2 || cost * things.len() < WORTH {
        things.iter().map(f).collect()
    } else {
        things.par_iter().map(&f).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_same_on_one_thread_and_on_many() {
        let data: Vec<f64> = (0..1000).map(|i| f64::from(i).sin()).collect();
        let sums = |piece: &[f64]| -> Result<Vec<f64>, ()> { Ok(vec![piece.iter().sum()]) };
        let (alone, together) = (pieces(&data, 7, 0, sums), pieces(&data, 7, usize::MAX, sums));
        assert_eq!(alone, together);
        assert_eq!(alone.map(|a| a.len()), Ok(143));
        let failing = |x: &f64| if *x > 0.9 { Err(x.to_bits()) } else { Ok(*x) };
        assert!(each(&data, 0, failing).is_err() && each(&data, WORTH, failing).is_err());
        assert_eq!(each(&data[..1], 0, failing), Ok(vec![0.0]));
    }
}
