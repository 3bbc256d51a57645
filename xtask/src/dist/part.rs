//! The parts of a release.

use super::place::Place;
use super::{bill, command, image, library, package, sums, wheel};
use crate::report::Made;

/// A part of a release for one platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The archive of the command.
    Command,
    /// The archive of the C libraries.
    Library,
    /// The Debian package.
    Deb,
    /// The Python package: the source distribution, and a wheel built from it.
    Wheel,
    /// The bill of materials of the command.
    Sbom,
    /// The container image.
    Image,
    /// The checksums of all files.
    Sums,
}

impl Part {
    /// All parts; `Deb` and `Image` contain the command, `Sums` covers the files of all others.
    pub(super) const ALL: [Self; 7] =
        [Self::Command, Self::Library, Self::Deb, Self::Wheel, Self::Sbom, Self::Image, Self::Sums];

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Library => "library",
            Self::Deb => "deb",
            Self::Wheel => "wheel",
            Self::Sbom => "sbom",
            Self::Image => "image",
            Self::Sums => "sums",
        }
    }

    pub(super) fn make(self, place: &Place) -> Made {
        match self {
            Self::Command => command::make(place),
            Self::Library => library::make(place),
            Self::Deb => package::make(place),
            Self::Wheel => wheel::make(place),
            Self::Sbom => bill::make(place),
            Self::Image => image::make(place),
            Self::Sums => sums::make(place),
        }
    }

    /// Installs the part in a fresh environment and uses it there.
    pub(super) fn try_out(self, place: &Place) -> Made {
        match self {
            Self::Command => command::try_out(place),
            Self::Library => library::try_out(place),
            Self::Deb => package::try_out(place),
            Self::Wheel => wheel::try_out(place),
            Self::Sbom => bill::try_out(place),
            Self::Image => image::try_out(place),
            Self::Sums => sums::try_out(place),
        }
    }
}
