//! Quantities: any text is an error or an amount that is printed and read again without loss.

use husk_core::quantity::Quantity;

/// Two quantities, separated by a line break; without one it is the same twice.
pub fn quantity(text: &str) {
    let (first, second) = text.split_once('\n').unwrap_or((text, text));
    let (Some(first), Some(second)) = (read(first), read(second)) else { return };
    let larger = first.clone().max(second.clone());
    if let Some(sum) = first.checked_add(&second) {
        shown(&sum);
        assert_eq!(Some(first.cmp(&sum)), second.checked_sub(&second).map(|zero| zero.cmp(&second)));
        if let Some(back) = sum.checked_sub(&second) {
            assert_eq!(back, first);
        }
    }
    if let Some(difference) = first.checked_sub(&second) {
        shown(&difference);
        assert_eq!(difference.signum() >= 0, larger == first);
    }
    let mut most = first;
    for _ in 0..3 {
        most.add_saturating(&second);
    }
    shown(&most);
}

fn read(text: &str) -> Option<Quantity> {
    let quantity = Quantity::parse(text).ok()?;
    let printed = shown(&quantity);
    let again = Quantity::parse(&printed).unwrap_or_else(|error| panic!("{text:?} is printed as {printed:?}: {error}"));
    assert_eq!(again.to_string(), printed, "what was printed is printed differently");
    Some(quantity)
}

/// Everything that looks at a quantity; its printed form.
fn shown(quantity: &Quantity) -> String {
    let (whole, milli) = (quantity.value(), quantity.milli_value());
    if !quantity.is_negative() {
        assert!(whole >= 0 && milli >= whole, "{quantity}: {whole} units and {milli} thousandths");
    }
    assert_eq!(quantity.is_zero(), quantity.signum() == 0);
    let printed = quantity.to_string();
    // Zeros in front stay as they were typed.
    assert!(printed.trim_start_matches(['+', '-', '0']).len() < 64, "{printed}");
    if let Ok(again) = Quantity::parse(&printed) {
        assert_eq!(&again, quantity, "printed as {printed}");
    }
    printed
}
