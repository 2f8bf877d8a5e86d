//! The fact tables.

use std::collections::BTreeMap;
use std::path::Path;

/// A field of a type, as its table row has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Field {
    /// Empty for an embedded struct.
    pub(crate) name: String,
    pub(crate) shape: String,
    pub(crate) is_required: bool,
    pub(crate) patch_strategy: String,
    pub(crate) patch_merge_key: String,
    pub(crate) list_type: String,
    pub(crate) list_keys: String,
    pub(crate) map_type: String,
    /// JSON, or a bare word.
    pub(crate) default: String,
    pub(crate) enumeration: String,
    pub(crate) format: String,
}

#[derive(Debug, Default)]
pub(crate) struct Type {
    /// Empty for types that are not published.
    pub(crate) definition: String,
    pub(crate) map_type: String,
    pub(crate) fields: Vec<Field>,
}

/// Group, version and kind.
pub(crate) type Gvk = [String; 3];

#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// By Go name.
    pub(crate) types: BTreeMap<String, Type>,
    /// The kinds that a definition stands for.
    pub(crate) kinds: BTreeMap<String, Vec<Gvk>>,
    /// Discriminator and its fields with their values, by definition.
    pub(crate) unions: BTreeMap<String, (String, BTreeMap<String, String>)>,
    /// What the values of a map may be, by definition and property.
    pub(crate) value_enums: BTreeMap<(String, String), Vec<String>>,
}

impl Facts {
    pub(crate) fn read(own: &Path, schema: &Path) -> Result<Facts, Box<dyn std::error::Error>> {
        let mut facts = Facts::default();
        for entry in std::fs::read_dir(schema.join("fields"))? {
            facts.read_fields(&entry?.path())?;
        }
        for row in rows(&own.join("kinds.tsv"))? {
            let [definition, gvk @ ..] = &row[..] else { return Err("kinds.tsv: an empty row".into()) };
            let gvk = <&Gvk>::try_from(gvk).map_err(|_| format!("kinds.tsv: {definition}: four cells a row"))?;
            facts.kinds.entry(definition.clone()).or_default().push(gvk.clone());
        }
        for row in rows(&own.join("unions.tsv"))? {
            let [definition, discriminator, fields] = &row[..] else {
                return Err("unions.tsv: three cells a row".into());
            };
            let fields = fields.split(',').filter_map(|f| f.split_once('='));
            let fields = fields.map(|(field, value)| (field.to_owned(), value.to_owned())).collect();
            facts.unions.insert(definition.clone(), (discriminator.clone(), fields));
        }
        for row in rows(&own.join("value-enums.tsv"))? {
            let [definition, property, values] = &row[..] else {
                return Err("value-enums.tsv: three cells a row".into());
            };
            let values = values.split(',').map(str::to_owned).collect();
            facts.value_enums.insert((definition.clone(), property.clone()), values);
        }
        Ok(facts)
    }

    fn read_fields(&mut self, file: &Path) -> Result<(), Box<dyn std::error::Error>> {
        let mut current = String::new();
        for row in rows(file)? {
            let at = |n: usize| row.get(n).cloned().unwrap_or_default();
            match row[0].as_str() {
                "T" => {
                    current = at(1);
                    self.types.insert(at(1), Type { definition: at(2), map_type: at(3), fields: Vec::new() });
                }
                "F" => {
                    let field = Field {
                        name: at(1),
                        shape: at(2),
                        is_required: at(3).contains('r'),
                        patch_strategy: at(5),
                        patch_merge_key: at(6),
                        list_type: at(7),
                        list_keys: at(8),
                        map_type: at(9),
                        default: at(10),
                        enumeration: at(11),
                        format: at(12),
                    };
                    self.types.get_mut(&current).ok_or("a field before the first type")?.fields.push(field);
                }
                other => return Err(format!("{}: no row begins with {other:?}", file.display()).into()),
            }
        }
        Ok(())
    }

    /// The fields of a type with those of embedded structs in their place.
    pub(crate) fn flat(&self, name: &str) -> Vec<Field> {
        let mut out = Vec::new();
        for field in self.types.get(name).map(|t| t.fields.as_slice()).unwrap_or_default() {
            if field.name.is_empty() {
                out.extend(self.flat(field.shape.trim_start_matches(['*', '@'])));
            } else {
                out.push(field.clone());
            }
        }
        out
    }
}

/// The cells of a table; `-` is an empty one.
fn rows(file: &Path) -> Result<Vec<Vec<String>>, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let rows = text.lines().filter(|l| !l.starts_with('#') && !l.is_empty());
    Ok(rows.map(|l| l.split('\t').map(|c| if c == "-" { String::new() } else { c.to_owned() }).collect()).collect())
}
