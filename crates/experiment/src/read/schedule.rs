//! Schedules: values that change at instants.

use sojourn_units::Duration;

use crate::entry::Entry;
use crate::error::ReadError;
use crate::form::Form;
use crate::forms::Span;

/// A schedule: pairs of an instant and the value from then on, the first at zero.
pub(super) fn steps<T>(
    entry: &Entry<'_>,
    accepts: &str,
    pair_accepts: &str,
    read: impl Fn(&Entry<'_>) -> Result<T, ReadError>,
) -> Result<Vec<(Duration, T)>, ReadError> {
    let steps = entry.items().filter(|steps| !steps.is_empty());
    let steps = steps.ok_or_else(|| entry.refuse(accepts))?;
    let mut values: Vec<(Duration, T)> = Vec::with_capacity(steps.len());
    for step in &steps {
        let pair: Option<[Entry<'_>; 2]> = step.items().and_then(|pair| pair.try_into().ok());
        let Some([from, value]) = pair else {
            return Err(step.refuse(pair_accepts));
        };
        let (instant, value) = (Span::Any.read(&from)?, read(&value)?);
        match values.last() {
            None if !instant.is_zero() => {
                return Err(from.refuse("\"0 s\", the first instant of a schedule"));
            }
            Some((last, _)) if instant <= *last => {
                return Err(from.refuse(format!("after the instant before it (\"{last}\")")));
            }
            _ => values.push((instant, value)),
        }
    }
    Ok(values)
}
