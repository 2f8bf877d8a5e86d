//! Defaults of amounts: what is finer than a thousandth rounds up to one.

use pintle_apimachinery::quantity::{Format, Quantity};
use pintle_apimachinery::{Value, quantity};

/// Rounds every amount of a map of amounts up to thousandths.
pub fn round_up_to_millis(amounts: Option<&mut Value>) {
    let Some(amounts) = amounts.and_then(Value::as_object_mut) else { return };
    for amount in amounts.values_mut() {
        // only these two suffixes write amounts finer than a thousandth
        let is_fine = amount.as_str().is_some_and(|text| text.ends_with(['n', 'u']) || text.contains("e-"));
        if let Some(parsed) = amount.as_str().filter(|_| is_fine).and_then(|text| Quantity::parse(text).ok()) {
            *amount = Value::from(rounded(parsed).canonical());
        }
    }
}

fn rounded(amount: quantity::Quantity) -> Quantity {
    let format = match amount.format() {
        Format::BinarySi => Format::DecimalSi,
        other => other,
    };
    Quantity::from_millis(amount.milli_value(), format)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    #[test]
    fn thousandths_are_the_finest() {
        let mut amounts = json!({"a": "1500u", "b": "1n", "c": "2", "d": "-1500u"});
        round_up_to_millis(Some(&mut amounts));
        assert_eq!(amounts, json!({"a": "2m", "b": "1m", "c": "2", "d": "-2m"}));
    }
}
