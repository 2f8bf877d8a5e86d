//! `--token-auth-file`: tokens in a CSV file (token, user, uid, groups).

use super::{Authenticated, TokenAuthenticator};
use async_trait::async_trait;
use indexmap::IndexMap;
use pintle_apimachinery::Str;
use pintle_kinds::UserInfo;

/// The tokens of a file.
#[derive(Debug, Default)]
pub struct TokenFile {
    tokens: IndexMap<String, UserInfo>,
}

impl TokenFile {
    /// Reads the text of a token file; `path` is for messages.
    ///
    /// # Errors
    /// A text for the user when a line has too few columns or is no CSV.
    pub fn parse(text: &str, path: &str) -> Result<TokenFile, String> {
        let mut tokens = IndexMap::new();
        for record in csv_records(text)? {
            let [token, name, uid, rest @ ..] = record.as_slice() else {
                return Err(format!(
                    "token file '{path}' must have at least 3 columns (token, user name, user uid), found {}",
                    record.len()
                ));
            };
            if token.is_empty() {
                tracing::warn!(path, "empty token has been found in token file");
                continue;
            }
            let groups = rest.first().map(|groups| groups.split(',').map(Str::new).collect()).unwrap_or_default();
            let user = UserInfo { name: Str::new(name), uid: Str::new(uid), groups, extra: Vec::new() };
            if tokens.insert(token.clone(), user).is_some() {
                tracing::warn!(path, "duplicate token has been found in token file");
            }
        }
        Ok(TokenFile { tokens })
    }
}

/// The records of RFC 4180 text: fields between commas, in double quotes where they hold any.
fn csv_records(text: &str) -> Result<Vec<Vec<String>>, String> {
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut chars = text.chars().peekable();
    let mut is_quoted = false;
    let mut line = 1;
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' if is_quoted => is_quoted = false,
            c if is_quoted => field.push(c),
            '"' if field.is_empty() => is_quoted = true,
            '"' => return Err(format!("parse error on line {line}: bare \" in non-quoted field")),
            ',' => record.push(std::mem::take(&mut field)),
            '\n' => {
                line += 1;
                end_record(&mut records, &mut record, &mut field);
            }
            c => field.push(c),
        }
    }
    if is_quoted {
        return Err(format!("parse error on line {line}: extraneous or missing \" in quoted-field"));
    }
    end_record(&mut records, &mut record, &mut field);
    Ok(records)
}

fn end_record(records: &mut Vec<Vec<String>>, record: &mut Vec<String>, field: &mut String) {
    if field.ends_with('\r') {
        field.pop();
    }
    if !record.is_empty() || !field.is_empty() {
        record.push(std::mem::take(field));
        records.push(std::mem::take(record));
    }
}

#[async_trait]
impl TokenAuthenticator for TokenFile {
    async fn authenticate_token(&self, token: &str, _: &[Str]) -> Result<Option<Authenticated>, String> {
        Ok(self.tokens.get(token).map(|user| Authenticated { user: user.clone(), ..Authenticated::default() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn files() {
        let file = TokenFile::parse("t1,jane,1,\"dev,ops\"\r\n\nt2,\"jo \"\"e\"\"\",2\n,x,y\n", "f").unwrap();
        let users: Vec<String> = file
            .tokens
            .iter()
            .map(|(token, user)| format!("{token} {} {} {:?}", user.name, user.uid, user.groups))
            .collect();
        expect![[r#"
            t1 jane 1 ["dev", "ops"]
            t2 jo "e" 2 []"#]]
        .assert_eq(&users.join("\n"));
        assert_eq!(
            TokenFile::parse("a,b", "f").unwrap_err(),
            "token file 'f' must have at least 3 columns (token, user name, user uid), found 2"
        );
        assert!(TokenFile::parse("a,b,c,\"d", "f").is_err());
    }
}
