//! Families of metrics whose values are kept outside of the `prometheus` crate, because they are counted for every
//! request: their names, and their values when they are read.

use prometheus::core::Desc;
use prometheus::proto::{self, LabelPair, Metric, MetricFamily, MetricType};
use std::collections::HashMap;

/// Name without its prefix, help, and labels.
pub(crate) type Family = (&'static str, &'static str, &'static [&'static str]);

/// Returns the descriptions of families. Their names are constants and valid.
pub(crate) fn descriptions(prefix: &str, families: &[Family]) -> Vec<Desc> {
    let describe = |(name, help, labels): &Family| {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let name = format!("{prefix}{name}");
        Desc::new(name, (*help).to_owned(), labels, HashMap::new())
    };
    families
        .iter()
        .filter_map(|family| describe(family).ok())
        .collect()
}

/// The values of families, in the order in which they were first named.
#[derive(Default)]
pub(crate) struct Values(Vec<(Family, MetricType, Vec<Metric>)>);

impl Values {
    fn add(
        &mut self,
        family: Family,
        ty: MetricType,
        labels: &[&str],
        fill: impl FnOnce(&mut Metric),
    ) {
        let pairs = family.2.iter().zip(labels).map(|(name, value)| {
            let mut pair = LabelPair::default();
            pair.set_name((*name).to_owned());
            pair.set_value((*value).to_owned());
            pair
        });
        // In the order in which the `prometheus` crate prints its own families.
        let mut pairs: Vec<LabelPair> = pairs.collect();
        bareboat_api::sort_by(&mut pairs, |one, other| one.name().cmp(other.name()));
        let mut metric = Metric::default();
        metric.set_label(pairs);
        fill(&mut metric);
        match self.0.iter_mut().find(|(known, ..)| known.0 == family.0) {
            Some((.., metrics)) => metrics.push(metric),
            None => self.0.push((family, ty, vec![metric])),
        }
    }

    pub(crate) fn gauge(&mut self, family: Family, labels: &[&str], value: f64) {
        self.add(family, MetricType::GAUGE, labels, |metric| {
            let mut gauge = proto::Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        });
    }

    pub(crate) fn counter(&mut self, family: Family, labels: &[&str], value: u64) {
        self.add(family, MetricType::COUNTER, labels, |metric| {
            let mut counter = proto::Counter::default();
            counter.set_value(value as f64);
            metric.set_counter(counter);
        });
    }

    pub(crate) fn histogram(&mut self, family: Family, labels: &[&str], value: proto::Histogram) {
        self.add(family, MetricType::HISTOGRAM, labels, |metric| {
            metric.set_histogram(value);
        });
    }

    /// Adds a histogram, unless it is empty.
    pub(crate) fn histogram_if_any(
        &mut self,
        family: Family,
        labels: &[&str],
        value: proto::Histogram,
    ) {
        if value.get_sample_count() > 0 {
            self.histogram(family, labels, value);
        }
    }

    /// Returns the families, for the `prometheus` crate.
    pub(crate) fn print(self, prefix: &str) -> Vec<MetricFamily> {
        let families = self.0.into_iter().map(|((name, help, _), ty, metrics)| {
            let mut family = MetricFamily::default();
            family.set_name(format!("{prefix}{name}"));
            family.set_help(help.to_owned());
            family.set_field_type(ty);
            family.set_metric(metrics);
            family
        });
        families.collect()
    }
}
