//! Arithmetic in GF(2^61 - 1), with poison.

/// The modulus, a Mersenne prime.
const P: u64 = (1 << 61) - 1;

/// An element of the field, or poison: the content of memory that nobody has written (rule 12).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Element(u64);

impl Element {
    /// Zero.
    pub const ZERO: Element = Element(0);
    /// What uninitialised memory holds. Every operation on it gives poison again.
    pub const POISON: Element = Element(u64::MAX);

    /// The residue of a number.
    pub fn new(value: u64) -> Element {
        Element(value % P)
    }

    /// The residue of a finite literal, which is a dyadic rational and hence exact; poison otherwise.
    pub fn from_f64(value: f64) -> Element {
        if !value.is_finite() {
            return Element::POISON;
        }
        let bits = value.abs().to_bits();
        let (exponent, fraction) = ((bits >> 52) as i64, bits & ((1 << 52) - 1));
        let (mantissa, power) =
            if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
        // 2^61 = 1, so only the exponent's residue modulo 61 matters.
        let magnitude = Element::new(mantissa).times(Element(1 << power.rem_euclid(61)));
        if value < 0.0 { Element::ZERO.minus(magnitude) } else { magnitude }
    }

    /// The residue, or all bits set for poison.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Whether this is poison.
    pub fn is_poison(self) -> bool {
        self == Element::POISON
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Element) -> Element {
        self.combine(other, |a, b| (a + b) % P)
    }

    /// The difference.
    #[must_use]
    pub fn minus(self, other: Element) -> Element {
        self.combine(other, |a, b| (a + P - b) % P)
    }

    /// The product.
    #[must_use]
    pub fn times(self, other: Element) -> Element {
        self.combine(other, |a, b| {
            // 2^61 = 1: the upper part of the product is added to the lower.
            let product = u128::from(a) * u128::from(b);
            ((product as u64 & P) + (product >> 61) as u64) % P
        })
    }

    /// The quotient; by zero it is poison.
    #[must_use]
    pub fn over(self, other: Element) -> Element {
        if other == Element::ZERO {
            return Element::POISON;
        }
        let (mut inverse, mut square, mut exponent) = (Element(1), other, P - 2);
        while exponent > 0 {
            if exponent & 1 == 1 {
                inverse = inverse.times(square);
            }
            square = square.times(square);
            exponent >>= 1;
        }
        self.times(inverse)
    }

    fn combine(self, other: Element, f: impl Fn(u64, u64) -> u64) -> Element {
        if self.is_poison() || other.is_poison() { Element::POISON } else { Element(f(self.0, other.0)) }
    }
}

#[cfg(test)]
mod tests {
    use super::Element;

    #[test]
    fn literals_are_exact_and_poison_absorbs() {
        let three_quarters = Element::from_f64(0.75);
        assert_eq!(three_quarters.times(Element::new(4)), Element::new(3));
        assert_eq!(Element::from_f64(-2.0).plus(Element::new(2)), Element::ZERO);
        assert_eq!(Element::from_f64(5e-324).over(Element::from_f64(5e-324)), Element::new(1));
        assert!(Element::POISON.times(Element::ZERO).is_poison());
        assert!(Element::new(1).over(Element::ZERO).is_poison());
    }
}
