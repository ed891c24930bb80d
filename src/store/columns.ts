import type { SQLInputValue } from 'node:sqlite'

/** How the fields of a record stand in the columns of a table. */
export interface Columns<Field extends string> {
  /** What stands behind SELECT for rows with the fields of a record, or with those that are wanted. */
  selected(isWanted?: (field: Field) => boolean): string
  /** What stands behind INSERT INTO and the name of the table. */
  readonly inserted: string
  /** What is bound to `inserted`. */
  valuesOf(record: Readonly<Record<Field, SQLInputValue>>): SQLInputValue[]
}

/** @param names field -> column, in the order in which they are written */
export function createColumns<Field extends string>(names: Readonly<Record<Field, string>>): Columns<Field> {
  const fields = Object.keys(names) as Field[]
  return {
    selected: (isWanted = () => true) =>
      fields
        .filter(isWanted)
        .map((field) => `${names[field]} AS ${field}`)
        .join(', '),
    inserted: `(${Object.values(names).join(', ')}) VALUES (${fields.map(() => '?').join(', ')})`,
    valuesOf: (record) => fields.map((field) => record[field]),
  }
}
