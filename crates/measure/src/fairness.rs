//! Fairness between flows.

/// Jain's fairness index (Jain, Chiu, Hawe 1984): (Σx)² / (n·Σx²); `None` if no value is above zero.
pub fn jain(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let n = values.clone().count() as f64;
    let sum: f64 = values.clone().sum();
    let squares: f64 = values.map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jain index of (1, 1, 1, 0): 3² / (4·3) = 0.75.
    #[test]
    fn one_starved_flow_of_four_gives_three_quarters() {
        assert_eq!(jain([1.0, 1.0, 1.0, 0.0].into_iter()), Some(0.75));
        assert_eq!(jain([5.0; 3].into_iter()), Some(1.0));
        assert_eq!(jain([0.0; 3].into_iter()), None);
    }
}
