//! What the node's configuration says about images, by KubeletConfiguration's names where it has them.

use std::path::PathBuf;
use std::time::Duration;

use husk_engine::Compiler;

use super::source::ImageSource;

/// How images are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImagesConfig {
    /// `imageSources`: where images are pulled from, in this order.
    pub sources: Vec<ImageSource>,
    /// `imageGCHighThresholdPercent`: images are removed when more of the disk is used.
    pub high_threshold_percent: u8,
    /// `imageGCLowThresholdPercent`: so many are removed that no more of it is used.
    pub low_threshold_percent: u8,
    /// `imageMinimumGCAge`: what came later than this ago stays.
    pub minimum_age: Duration,
    /// `imageMaximumGCAge`: what was unused for so long goes even though there is room. Zero is never.
    pub maximum_age: Duration,
    /// Time between two looks at the disk.
    pub gc_period: Duration,
    /// `compiledCodeLimit`: bytes of compiled code that are kept.
    pub compiled_code_limit: u64,
    /// `compileTimeout` and `compileMemory`, and what compiles; without it the agent does, and nothing bounds it.
    pub compiler: Option<Compiler>,
}

impl Default for ImagesConfig {
    fn default() -> Self {
        Self {
            sources: Vec::new(),
            high_threshold_percent: 85,
            low_threshold_percent: 80,
            minimum_age: Duration::from_secs(120),
            maximum_age: Duration::ZERO,
            gc_period: Duration::from_secs(300),
            compiled_code_limit: 256 << 20,
            compiler: None,
        }
    }
}

impl ImagesConfig {
    /// Adds a folder to the sources.
    pub fn with_source(mut self, folder: impl Into<PathBuf>) -> Self {
        self.sources.push(ImageSource::Folder(folder.into()));
        self
    }

    /// What is wrong with it: a message for each field.
    pub fn problems(&self) -> Vec<String> {
        let (high, low) = (self.high_threshold_percent, self.low_threshold_percent);
        let rules = [
            (high > 100, format!("imageGCHighThresholdPercent: {high} is not between 0 and 100")),
            (low > 100, format!("imageGCLowThresholdPercent: {low} is not between 0 and 100")),
            (
                low >= high,
                format!("imageGCLowThresholdPercent: {low} must be less than imageGCHighThresholdPercent, {high}"),
            ),
            (
                !self.maximum_age.is_zero() && self.maximum_age <= self.minimum_age,
                "imageMaximumGCAge: must be greater than imageMinimumGCAge, or zero for never".to_owned(),
            ),
            (self.gc_period.is_zero(), "imageGCPeriod: must be greater than zero".to_owned()),
        ];
        rules.into_iter().filter(|(broken, _)| *broken).map(|(_, message)| message).collect()
    }
}
