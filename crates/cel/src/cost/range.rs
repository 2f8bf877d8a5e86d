//! Sizes and costs as ranges, whose sums and products stop at the largest number.

/// The least and the most that something can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
}

impl Range {
    /// Anything at all.
    pub const UNKNOWN: Self = Self { min: 0, max: u64::MAX };
    /// Nothing.
    pub const ZERO: Self = Self::fixed(0);

    /// Exactly that much.
    #[must_use]
    pub const fn fixed(amount: u64) -> Self {
        Self { min: amount, max: amount }
    }

    /// The sum of two.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    /// The product of two.
    #[must_use]
    pub const fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// This much times a factor, rounded up.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        // Conversion from floating point saturates as the sums do.
        let scaled = |amount: u64| (amount as f64 * factor).ceil() as u64;
        Self { min: scaled(self.min), max: scaled(self.max) }
    }

    /// What is either of two.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}
