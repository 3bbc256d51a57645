//! The type of metrics, and the macro that declares them.

use super::counters::Counters;

/// One number that a database reports about itself; see [`Stats::metrics`](crate::Stats::metrics).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Metric {
    /// The name, as in JSON: unique, lower case, with the unit last or before a participle.
    pub name: &'static str,
    /// Whether the value only grows.
    pub kind: MetricKind,
    /// The unit of the value.
    pub unit: MetricUnit,
    /// The meaning, in a sentence.
    pub help: &'static str,
    /// Whether the value comes from the files, so that a read-only opening reports it as well. Other values
    /// belong to the process that has the database open.
    pub is_stored: bool,
    /// The value; `None` if it does not apply now, such as the age of the oldest tombstone in a
    /// database without tombstones.
    pub value: Option<u64>,
}

/// Whether a metric only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum MetricKind {
    /// Starts at zero when the database is opened, and only grows.
    Counter,
    /// A current value, which grows and shrinks.
    Gauge,
}

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum MetricUnit {
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Microseconds.
    Micros,
}

/// A struct of metrics.
pub(crate) trait MetricGroup {
    /// Returns the struct with the values of the fields that have a counter; the other fields have
    /// their defaults.
    fn counted(counters: &Counters) -> Self;

    /// Adds the metrics of this struct.
    fn append_metrics(&self, metrics: &mut Vec<Metric>);

    /// Returns a copy with the growth of each counter since `earlier`, and unchanged gauges.
    fn metrics_since(&self, earlier: &Self) -> Self;
}

/// The type of a field that holds a metric.
pub(super) trait MetricValue: Copy {
    /// The value for [`Metric::value`].
    fn value(self) -> Option<u64>;

    /// Returns the growth since `earlier`.
    fn since(self, earlier: Self) -> Self;
}

impl MetricValue for u64 {
    fn value(self) -> Option<u64> {
        Some(self)
    }

    fn since(self, earlier: Self) -> Self {
        self.saturating_sub(earlier)
    }
}

impl MetricValue for usize {
    fn value(self) -> Option<u64> {
        Some(self as u64)
    }

    fn since(self, earlier: Self) -> Self {
        self.saturating_sub(earlier)
    }
}

impl MetricValue for Option<u64> {
    fn value(self) -> Option<u64> {
        self
    }

    fn since(self, earlier: Self) -> Self {
        Some(self?.saturating_sub(earlier.unwrap_or(0)))
    }
}

/// Declares metrics. Each line `field: type = kind(Counter) unit "name"` defines a field of a struct, its
/// documentation, its entry in [`Stats::metrics`](crate::Stats::metrics), its part of the difference of two
/// structs and, with a `Counter`, the enum variant of that name. `[Stored]` before the unit marks a value that
/// comes from the files.
///
/// The fields after `and` are not metrics.
macro_rules! metrics {
    ($(
        $(#[$attribute:meta])*
        $group:ident {
            $(
                $(#[doc = $help:literal])*
                $field:ident: $type:ty = $kind:ident $(($counter:ident))? $([$stored:ident])? $unit:ident
                    $name:literal;
            )*
        } and {
            $(
                $(#[$other_attribute:meta])*
                $other:ident: $other_type:ty;
            )*
        }
    )*) => {
        /// A counter that threads increment.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub(crate) enum Counter {
            $($($($counter,)?)*)*
        }

        impl Counter {
            /// The number of counters.
            pub(crate) const COUNT: usize = [$($($(Self::$counter,)?)*)*].len();

            /// All counters.
            #[cfg(test)]
            pub(super) const ALL: [Self; Self::COUNT] = [$($($(Self::$counter,)?)*)*];
        }

        $(
            $(#[$attribute])*
            #[derive(Debug, Clone, Default)]
            #[non_exhaustive]
            pub struct $group {
                $(
                    $(#[doc = $help])*
                    pub $field: $type,
                )*
                $(
                    $(#[$other_attribute])*
                    pub $other: $other_type,
                )*
            }

            impl MetricGroup for $group {
                fn counted(counters: &Counters) -> Self {
                    let mut counted = Self::default();
                    $($(counted.$field = counters.get(Counter::$counter);)?)*
                    let _ = (&mut counted, counters);
                    counted
                }

                fn append_metrics(&self, metrics: &mut Vec<Metric>) {
                    $(metrics.push(Metric {
                        name: $name,
                        kind: MetricKind::$kind,
                        unit: MetricUnit::$unit,
                        help: concat!($($help),*).trim_ascii(),
                        is_stored: !<[&str]>::is_empty(&[$(stringify!($stored))?]),
                        value: self.$field.value(),
                    });)*
                }

                fn metrics_since(&self, earlier: &Self) -> Self {
                    let mut since = self.clone();
                    $(if MetricKind::$kind == MetricKind::Counter {
                        since.$field = self.$field.since(earlier.$field);
                    })*
                    since
                }
            }
        )*
    };
}

pub(super) use metrics;
