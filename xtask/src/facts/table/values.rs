//! The values of enumerated fields: the constants of types marked `+enum`.

use super::{Declaration, GoType, Package, Writer};
use crate::facts::golang::Constant;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;

impl Writer<'_> {
    /// Returns the values of a field whose type lists them all.
    // Upstream: kube-openapi, pkg/generators/enum.go.
    pub(super) fn values(
        &mut self,
        import: &str,
        package: &Package,
        ty: &GoType,
    ) -> Result<Option<String>> {
        let mut ty = ty.clone();
        while let GoType::Pointer(inner) | GoType::Slice(inner) | GoType::Map(inner) = ty {
            ty = *inner;
        }
        // A name may be an alias of a type in another package.
        for _ in 0..8 {
            let GoType::Named(owner, name) = &ty else {
                return Ok(None);
            };
            if owner.is_empty() || self.modules.package(owner).is_none() {
                return Ok(None);
            }
            let package = if owner == import {
                package
            } else {
                self.load(owner)?;
                &self.packages[owner]
            };
            // The constants of an alias are those of its target.
            let listed = package.enums.contains(name);
            if let Some(constants) = package.constants.get(name).filter(|_| listed) {
                let constants = constants.clone();
                return self.texts(constants).map(Some);
            }
            match package.types.get(name) {
                Some(Declaration::Alias(target)) => ty = target.clone(),
                _ => return Ok(None),
            }
        }
        bail!("aliases without end");
    }

    /// Formats constants for the table, sorted.
    fn texts(&mut self, constants: BTreeSet<Constant>) -> Result<String> {
        let mut texts = BTreeSet::new();
        for constant in constants {
            let text = match constant {
                Constant::Text(text) => text,
                Constant::Of(import, name) => {
                    self.load(&import)?;
                    let text = self.packages[&import].texts.get(&name);
                    text.with_context(|| format!("{import} has no constant {name}"))?
                        .clone()
                }
            };
            if text.contains(['_', ';', ',', ')']) {
                bail!("the table cannot represent {text}");
            }
            texts.insert(text);
        }
        let texts: Vec<String> = texts.iter().map(|text| text.replace(' ', "_")).collect();
        Ok(texts.join(";"))
    }
}
