//! `husk image`: the images in the store of an agent's data folder, whether the agent runs or not.

mod list;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use husk_agent::{Collected, ImageStore, ImagesConfig};
use husk_sim::Span;

use crate::out::out;

/// What `husk image` is asked.
#[derive(Args)]
pub(crate) struct Image {
    #[command(subcommand)]
    verb: Verb,
    /// The agent's data folder
    #[arg(long, value_name = "FOLDER", env = "HUSK_DATA_DIR", global = true)]
    data_dir: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Verb {
    /// List images
    #[command(visible_alias = "list")]
    Ls {
        /// How they are shown
        #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "table")]
        output: Output,
    },
    /// Import an OCI image layout (a directory or a tar of one), a .wasm file, or a folder with modules and files
    #[command(visible_alias = "load")]
    Import {
        /// What to import
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// What it is called, as in registry.example.com/web:1.0; of a layout with several images, the one to import
        #[arg(short, long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Show what an image is made of
    Inspect {
        /// A name, or a digest or its beginning
        #[arg(required = true, value_name = "IMAGE")]
        images: Vec<String>,
    },
    /// Remove images, unless a pod uses them
    #[command(visible_alias = "remove")]
    Rm {
        /// A name, or a digest or its beginning
        #[arg(required = true, value_name = "IMAGE")]
        images: Vec<String>,
    },
    /// Remove images that no pod uses, the longest unused first, until the disk is below the low threshold
    Gc(Gc),
}

#[derive(Args)]
struct Gc {
    /// Remove all that no pod uses, however full the disk is
    #[arg(long)]
    all: bool,
    /// Percent of the disk that have to be in use for anything to be removed (imageGCHighThresholdPercent)
    #[arg(long, value_name = "PERCENT", default_value_t = ImagesConfig::default().high_threshold_percent)]
    high: u8,
    /// Percent of the disk that may be in use afterwards (imageGCLowThresholdPercent)
    #[arg(long, value_name = "PERCENT", default_value_t = ImagesConfig::default().low_threshold_percent)]
    low: u8,
    /// What came later than this ago stays (imageMinimumGCAge)
    #[arg(long, value_name = "TIME", default_value = "2m")]
    minimum_age: Span,
    /// What was unused for longer goes, however much room there is (imageMaximumGCAge)
    #[arg(long, value_name = "TIME")]
    maximum_age: Option<Span>,
}

/// How images are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A line for each name
    Table,
    /// A JSON array
    Json,
}

impl Image {
    /// Does it.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let data_dir = self.data_dir.unwrap_or_else(husk_agent::default_data_dir);
        let store = ImageStore::of(&data_dir);
        match self.verb {
            Verb::Ls { output } => {
                let images = store.list()?;
                out(match output {
                    Output::Table => list::table(&images),
                    Output::Json => list::json(&images)?,
                });
            }
            Verb::Import { paths, name } => {
                if paths.len() > 1 && name.is_some() {
                    bail!("--name is for one path; import the others by themselves");
                }
                for path in paths {
                    for imported in store.import(&path, name.as_deref())? {
                        let digest = imported.digest.to_string();
                        let names =
                            if imported.names.is_empty() { list::NO_NAME.into() } else { imported.names.join(", ") };
                        out(format_args!("imported {names} {digest}"));
                    }
                }
            }
            Verb::Inspect { images } => {
                let found = images.iter().map(|image| list::inspected(&store, &store.find(image)?));
                let found = found.collect::<Result<Vec<_>>>()?;
                out(serde_json::to_string_pretty(&found)?);
            }
            Verb::Rm { images } => {
                for image in images {
                    store.remove(&image)?.iter().for_each(|gone| out(format_args!("removed {gone}")));
                }
            }
            Verb::Gc(gc) => {
                let Collected { removed, freed, missing } = gc.run(&store)?;
                removed.iter().for_each(|digest| out(format_args!("removed {digest}")));
                out(format_args!("{} images removed, {} free", removed.len(), list::bytes(freed)));
                if missing > 0 {
                    out(format_args!(
                        "{} more should be free, but what is left is in use or too young",
                        list::bytes(missing)
                    ));
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Gc {
    fn run(self, store: &ImageStore) -> Result<Collected> {
        if self.all {
            return Ok(store.prune()?);
        }
        let config = ImagesConfig {
            high_threshold_percent: self.high,
            low_threshold_percent: self.low,
            minimum_age: self.minimum_age.0,
            maximum_age: self.maximum_age.map_or_else(Default::default, |age| age.0),
            ..ImagesConfig::default()
        };
        match config.problems().as_slice() {
            [] => Ok(store.collect(&config, &Default::default())?),
            problems => bail!("{}", problems.join("; ")),
        }
    }
}
