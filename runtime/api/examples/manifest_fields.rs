//! Prints the page of fields: `cargo run -p husk-api --example manifest_fields > docs/manifest-fields.md`.

fn main() {
    print!("{}", husk_api::field_table_markdown());
}
