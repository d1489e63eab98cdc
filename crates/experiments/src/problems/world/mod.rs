//! Problems of the kind that users bring: priors far wider than the posterior, simulators, many modes, jumps and noise.
//!
//! The truths that have no closed form were made by `data/world_evidence.py`, from data made by `data/world_simulate.py`.

mod noise;
mod regression;
mod shapes;
pub(super) mod simulators;
mod sinusoid;

pub use noise::{Noise, noisy};

use anyhow::Result;
use batchquad::prior::Prior;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::{LogLikelihood, Problem};

/// A prior, a log-likelihood and the true log Z.
type Parts = (Prior, Box<LogLikelihood>, f64);

/// The problems, each with its name and with what makes it. The names with noise have to be static as well.
macro_rules! worlds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal => $make:expr;)+) => {
        /// The problems, the same for every seed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
        pub enum World {
            $($(#[$doc])* #[serde(rename = $name)] #[value(name = $name)] $variant,)+
        }

        impl World {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// What it is called.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// What it is called with noise.
            #[must_use]
            pub fn noisy_name(self, noise: Noise) -> &'static str {
                match (self, noise) {
                    $(
                        (Self::$variant, Noise::Low) => concat!($name, "-noise-0.05"),
                        (Self::$variant, Noise::Middle) => concat!($name, "-noise-0.3"),
                        (Self::$variant, Noise::High) => concat!($name, "-noise-1"),
                    )+
                }
            }

            /// The problem without noise.
            ///
            /// # Errors
            /// When committed data cannot be read.
            pub fn build(self) -> Result<Problem> {
                let (prior, log_likelihood, log_z) = match self {
                    $(Self::$variant => $make?,)+
                };
                Ok(Problem { name: self.name().into(), prior, log_likelihood, log_z })
            }
        }
    };
}

worlds! {
    /// A linear regression with 4 parameters, the prior 10 times wider than the posterior.
    Linear4By10 = "linear-4-10" => regression::linear(4, 10);
    /// The same, 30 times wider.
    Linear4By30 = "linear-4-30" => regression::linear(4, 30);
    /// The same, 100 times wider.
    Linear4By100 = "linear-4-100" => regression::linear(4, 100);
    /// A linear regression with 6 parameters, the prior 10 times wider than the posterior.
    Linear6By10 = "linear-6-10" => regression::linear(6, 10);
    /// The same, 30 times wider.
    Linear6By30 = "linear-6-30" => regression::linear(6, 30);
    /// The same, 100 times wider.
    Linear6By100 = "linear-6-100" => regression::linear(6, 100);
    /// A linear regression with 8 parameters, the prior 10 times wider than the posterior.
    Linear8By10 = "linear-8-10" => regression::linear(8, 10);
    /// The same, 30 times wider.
    Linear8By30 = "linear-8-30" => regression::linear(8, 30);
    /// The same, 100 times wider.
    Linear8By100 = "linear-8-100" => regression::linear(8, 100);
    /// A logistic regression with 5 parameters, the prior 50 times wider than the posterior.
    Logistic5 = "logistic-5" => regression::logistic();
    /// A round Gaussian in two dimensions.
    Gaussian2 = "gaussian-2" => shapes::gaussian();
    /// Four modes of unequal weight under a uniform prior in two dimensions.
    FourModes = "four-modes" => shapes::four_modes();
    /// Rosenbrock's valley.
    Rosenbrock = "rosenbrock" => shapes::rosenbrock();
    /// A Gaussian with a jump of 2 along a line through the posterior.
    Jump = "jump" => shapes::jump();
    /// A narrow Gaussian cut off by a half-space in which the likelihood is zero.
    HalfSpace = "half-space" => shapes::half_space();
    /// A sinusoid of unknown period, with an alias.
    Sinusoid = "sinusoid" => sinusoid::sinusoid();
    /// An epidemic with 3 parameters.
    Sir = "sir" => simulators::sir();
    /// Lotka–Volterra with 6 parameters, the noise known.
    LotkaVolterra6 = "lotka-volterra-6" => simulators::lotka_volterra(6);
    /// Lotka–Volterra with 8 parameters.
    LotkaVolterra8 = "lotka-volterra-8" => simulators::lotka_volterra(8);
}
