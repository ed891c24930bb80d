import type { ListResource } from '../lists/resource.ts'
import type { SqlField } from '../lists/sql.ts'

/**
 * A label. Neither keys nor values have quotes, so `"key":"value"` stands in the JSON of the labels if, and only if, the item has the label.
 */
const label = (key: string): SqlField => ({
  ...{ type: 'text', column: 'labels', isOrdered: false },
  part: (value) => `${JSON.stringify(key)}:${JSON.stringify(value)}`,
})

/** Filters by the labels in the column `labels`: `metadata.labels.KEY`. */
export const labelFilters: NonNullable<ListResource<SqlField>['families']> = [
  { prefix: 'metadata.labels.', placeholder: 'KEY', field: label },
]
