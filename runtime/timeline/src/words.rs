//! Words that come again and again take a byte each.

use husk_core::reasons as known;
use husk_core::status::Word;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Reasons and types of conditions. Only this process reads what is written with them, so their order means nothing.
const WORDS: &[&str] = &[
    known::POD_SCHEDULED,
    known::POD_READY_TO_START_CONTAINERS,
    known::INITIALIZED,
    known::CONTAINERS_READY,
    known::READY,
    known::CONTAINERS_NOT_READY,
    known::CONTAINERS_NOT_INITIALIZED,
    known::READINESS_GATES_NOT_READY,
    known::POD_COMPLETED,
    known::POD_FAILED,
    known::CONTAINER_CREATING,
    known::POD_INITIALIZING,
    known::CRASH_LOOP_BACK_OFF,
    known::ERR_IMAGE_PULL,
    known::IMAGE_PULL_BACK_OFF,
    known::COMPLETED,
    known::ERROR,
    known::OOM_KILLED,
    known::AGENT_RESTARTED,
    known::NODE_REBOOTED,
    "Scheduled",
    "Pulling",
    "Pulled",
    "Created",
    "Started",
    "Killing",
    "BackOff",
    "Failed",
    "Unhealthy",
    "ProbeWarning",
    "FailedMount",
];

#[derive(Serialize, Deserialize)]
enum Written<'a> {
    Known(u8),
    Other(#[serde(borrow)] &'a str),
}

/// For `#[serde(with = "words")]`.
pub(crate) fn serialize<S: Serializer>(word: &Word, serializer: S) -> Result<S::Ok, S::Error> {
    let known = WORDS.iter().position(|known| known == word).and_then(|place| u8::try_from(place).ok());
    known.map_or(Written::Other(word), Written::Known).serialize(serializer)
}

/// The same the other way.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
    Ok(match Written::deserialize(deserializer)? {
        Written::Known(place) => WORDS.get(usize::from(place)).copied().unwrap_or_default().into(),
        Written::Other(word) => word.to_owned().into(),
    })
}
