import type { SQLInputValue } from 'node:sqlite'

/** Maps the fields of a record to the columns of a table. */
export interface Columns<Field extends string> {
  /** The text after SELECT that reads the fields of a record, or only the wanted ones. */
  selected(isWanted?: (field: Field) => boolean): string
  /** The text after INSERT INTO and the name of the table. */
  readonly inserted: string
  /** The values for the placeholders of `inserted`. */
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
