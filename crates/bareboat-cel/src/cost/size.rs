//! Ranges of sizes and costs that never overflow.

/// The range of a value's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

/// The minimum and maximum cost of an expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostEstimate {
    /// The minimum.
    pub min: u64,
    /// The maximum.
    pub max: u64,
}

/// Multiplies a whole number by a factor and rounds up.
fn times(x: u64, factor: f64) -> u64 {
    let product = (x as f64 * factor).ceil();
    // 2^64 is the first float that does not fit; the cast then saturates.
    product as u64
}

impl Size {
    pub(crate) const UNKNOWN: Size = Size {
        min: 0,
        max: u64::MAX,
    };

    pub(crate) fn fixed(size: u64) -> Size {
        Size {
            min: size,
            max: size,
        }
    }

    pub(crate) fn add(self, other: Size) -> Size {
        Size {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    pub(crate) fn multiply(self, other: Size) -> Size {
        Size {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    pub(crate) fn union(self, other: Size) -> Size {
        Size {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    pub(crate) fn factor(self, factor: f64) -> CostEstimate {
        CostEstimate {
            min: times(self.min, factor),
            max: times(self.max, factor),
        }
    }

    pub(crate) fn cost(self, each: CostEstimate) -> CostEstimate {
        CostEstimate {
            min: self.min.saturating_mul(each.min),
            max: self.max.saturating_mul(each.max),
        }
    }
}

impl CostEstimate {
    pub(crate) fn fixed(cost: u64) -> CostEstimate {
        CostEstimate {
            min: cost,
            max: cost,
        }
    }

    pub(crate) fn add(self, other: CostEstimate) -> CostEstimate {
        CostEstimate {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    pub(crate) fn multiply(self, other: CostEstimate) -> CostEstimate {
        CostEstimate {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    pub(crate) fn union(self, other: CostEstimate) -> CostEstimate {
        CostEstimate {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    pub(crate) fn factor(self, factor: f64) -> CostEstimate {
        CostEstimate {
            min: times(self.min, factor),
            max: times(self.max, factor),
        }
    }
}
