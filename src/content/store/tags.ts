/**
 * SQL: whether an entry has its name and tag. Of the bundles with the same tag, the newest has it; of one bundle that lists a tag
 * twice, the later entry. The query reads `entry` and `bundle`, joined.
 */
export const hasTag = `(entry.name <> '' AND entry.tag <> '' AND NOT EXISTS (
  SELECT 1 FROM entry AS other JOIN bundle AS newer ON newer.id = other.bundle AND newer.is_published = 1
  WHERE other.name = entry.name AND other.tag = entry.tag
    AND (newer.publication, newer.uid, other.id) > (bundle.publication, bundle.uid, entry.id)))`
