//! Fewer points where there are more than the width can show.
//!
//! A line keeps the highest value of each group, because a peak is what one looks for. Counts are added up, because
//! a share over a longer time is the share of the sums.

/// How many points of one series are drawn at most.
pub const POINTS: usize = 400;

/// Groups of equal size, so that no more than [`POINTS`] remain.
fn group(length: usize) -> usize {
    length.div_ceil(POINTS).max(1)
}

/// The highest of each group, at the moment of the group's first. A group without any value stays a gap.
pub(crate) fn peaks(points: &[(f64, Option<f64>)]) -> Vec<(f64, Option<f64>)> {
    let highest = |group: &[(f64, Option<f64>)]| {
        let first = group.first()?;
        Some((first.0, group.iter().filter_map(|point| point.1).reduce(f64::max)))
    };
    points.chunks(group(points.len())).filter_map(highest).collect()
}

/// The first of each group.
pub(crate) fn firsts(moments: &[f64], length: usize) -> Vec<f64> {
    moments.chunks(group(length)).filter_map(|group| group.first().copied()).collect()
}

/// The sum of each group.
pub(crate) fn sums(values: &[f64], length: usize) -> Vec<f64> {
    values.chunks(group(length)).map(|group| group.iter().copied().map(clean).sum()).collect()
}

/// What is no number, or less than nothing, counts as nothing.
pub(crate) const fn clean(value: f64) -> f64 {
    if value.is_finite() && value > 0.0 { value } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::{POINTS, firsts, peaks, sums};

    #[test]
    fn a_series_of_any_length_is_drawn_with_a_bounded_number_of_points() {
        for length in [0, 1, POINTS, POINTS + 1, 10 * POINTS + 7] {
            let points: Vec<_> = (0..length).map(|at| (at as f64, Some(1.0))).collect();
            assert!(peaks(&points).len() <= POINTS);
            assert!(firsts(&vec![0.0; length], length).len() <= POINTS);
        }
    }

    #[test]
    fn a_peak_survives_and_a_gap_stays_a_gap() {
        let mut points: Vec<_> = (0..2 * POINTS).map(|at| (at as f64, Some(1.0))).collect();
        points[301].1 = Some(9.0);
        (points[10].1, points[11].1) = (None, None);
        let thin = peaks(&points);
        assert_eq!(thin[150], (300.0, Some(9.0)));
        assert_eq!(thin[5], (10.0, None));
    }

    #[test]
    fn counts_are_added_up_and_nothing_else_counts() {
        assert_eq!(sums(&[1.0, 2.0, f64::NAN, -3.0], 2 * POINTS), [3.0, 0.0]);
    }
}
