//! The full-text index: a table that a trigger fills in the transaction that stores a post.

use anyhow::Result;
use bareboat::api::kind::{Search, Sought};
use bareboat::prelude::Status;
use mysql_async::Pool;
use mysql_async::prelude::Queryable as _;

/// The table, and the trigger on the log of the store. A deleted post has an empty value.
const STATEMENTS: [&str; 4] = [
    "CREATE TABLE IF NOT EXISTS post_text (
        post VARCHAR(600) NOT NULL PRIMARY KEY, words MEDIUMTEXT NOT NULL, FULLTEXT (words)
    ) CHARACTER SET utf8mb4",
    "DROP TRIGGER IF EXISTS index_posts",
    "CREATE TRIGGER index_posts AFTER INSERT ON log FOR EACH ROW
        IF NEW.resource = 'blog.example.com/posts' THEN
            DELETE FROM post_text WHERE post = CONVERT(NEW.`key` USING utf8mb4);
            IF NEW.value IS NOT NULL AND NEW.value <> '' THEN
                INSERT INTO post_text VALUES (CONVERT(NEW.`key` USING utf8mb4), CONCAT_WS(' ',
                    JSON_VALUE(CONVERT(NEW.value USING utf8mb4), '$.spec.title'),
                    JSON_VALUE(CONVERT(NEW.value USING utf8mb4), '$.spec.body')));
            END IF;
        END IF",
    // Posts that were stored before there was a trigger.
    "INSERT IGNORE INTO post_text SELECT CONCAT(namespace, '/', name), CONCAT_WS(' ',
        JSON_VALUE(object, '$.spec.title'), JSON_VALUE(object, '$.spec.body'))
    FROM live WHERE resource = 'blog.example.com/posts' AND object IS NOT NULL",
];

const FIND: &str = "SELECT post FROM post_text WHERE MATCH (words) AGAINST (?)
    AND (? = '' OR post LIKE CONCAT(?, '/%')) LIMIT 10000";

/// Finds posts by words.
pub(crate) struct Index(Pool);

impl Index {
    /// Prepares the index in the database of the store.
    pub(crate) async fn open(url: &str) -> Result<Index> {
        let pool = Pool::from_url(url)?;
        let mut connection = pool.get_conn().await?;
        for statement in STATEMENTS {
            connection.query_drop(statement).await?;
        }
        Ok(Index(pool))
    }

    /// Returns the search for a name in field selectors.
    pub(crate) fn search(self, field: &str) -> Search {
        Search::new(field, move |sought| {
            let pool = self.0.clone();
            async move {
                let found = find(&pool, &sought).await;
                found.map_err(|error| {
                    Status::unavailable("the full-text index does not answer").caused_by(error)
                })
            }
        })
    }
}

async fn find(pool: &Pool, sought: &Sought) -> mysql_async::Result<Vec<String>> {
    let mut connection = pool.get_conn().await?;
    let (text, namespace) = (sought.text.as_str(), sought.namespace.as_str());
    connection.exec(FIND, (text, namespace, namespace)).await
}
