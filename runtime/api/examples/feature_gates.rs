//! Prints the page of feature gates: `cargo run -p husk-api --example feature_gates > docs/feature-gates.md`.

fn main() {
    print!("{}", husk_api::gate_table_markdown());
}
