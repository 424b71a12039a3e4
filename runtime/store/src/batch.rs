//! What is written in one transaction.

use crate::key::ObjectKey;

/// What an object has to be like for a write to go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Whatever it is like.
    Any,
    /// It must not be there: create.
    Absent,
    /// It must be there: an update of whatever version.
    Present,
    /// It must be there in this version: compare and swap.
    Version(u64),
}

#[derive(Clone, Debug)]
pub(crate) enum Write {
    Put { key: ObjectKey, uid: String, body: Vec<u8>, expect: Expect },
    Status { key: ObjectKey, status: Vec<u8>, expect: Expect },
    Delete { key: ObjectKey, expect: Expect },
    Record { uid: String, bytes: Vec<u8> },
    Forget { uid: String },
    Fact { name: String, value: Option<Vec<u8>> },
}

/// Writes that happen all or not at all, in order, each seeing those before it.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub(crate) writes: Vec<Write>,
}

impl Batch {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates or replaces an object's body. Its status stays, unless the uid is another.
    pub fn put(self, key: ObjectKey, uid: &str, body: Vec<u8>, expect: Expect) -> Self {
        self.with(Write::Put { key, uid: uid.to_owned(), body, expect })
    }

    /// Replaces an object's status, in memory. The object must be there, whatever is expected.
    pub fn status(self, key: ObjectKey, status: Vec<u8>, expect: Expect) -> Self {
        self.with(Write::Status { key, status, expect })
    }

    /// Deletes an object. With [`Expect::Any`] one that isn't there is no conflict.
    pub fn delete(self, key: ObjectKey, expect: Expect) -> Self {
        self.with(Write::Delete { key, expect })
    }

    /// Keeps a pod's record.
    pub fn record(self, uid: &str, bytes: Vec<u8>) -> Self {
        self.with(Write::Record { uid: uid.to_owned(), bytes })
    }

    /// Drops a pod's record.
    pub fn forget(self, uid: &str) -> Self {
        self.with(Write::Forget { uid: uid.to_owned() })
    }

    /// Keeps a fact of the node: any name that doesn't begin with `store.`.
    pub fn fact(self, name: &str, value: Vec<u8>) -> Self {
        self.with(Write::Fact { name: name.to_owned(), value: Some(value) })
    }

    /// Drops a fact of the node.
    pub fn drop_fact(self, name: &str) -> Self {
        self.with(Write::Fact { name: name.to_owned(), value: None })
    }

    /// Has it nothing to write?
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    fn with(mut self, write: Write) -> Self {
        self.writes.push(write);
        self
    }
}
