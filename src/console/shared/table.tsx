// Tables: lists on a phone, and files of comma-separated values for those who go on with them in a spreadsheet.
import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { saveFile } from './parts.tsx'
import { sharedText } from './texts.ts'

interface Column<Item> {
  readonly title: string
  readonly cell: (item: Item) => ComponentChildren
  readonly isNumber?: boolean
  /** Of buttons, which say themselves what they do. */
  readonly isAction?: boolean
}

interface TableProps<Item> {
  readonly title: string
  readonly items: readonly Item[]
  readonly keyOf: (item: Item) => string
  /** The first one names the row. */
  readonly columns: readonly Column<Item>[]
  /** Name of the file, without its ending, that a user may save the shown rows to. */
  readonly file?: string
}

/** A table; on a phone a list. */
export function Table<Item>({ title, items, keyOf, columns, file }: TableProps<Item>) {
  const table = useRef<HTMLTableElement>(null)
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label={title}>
        <table class="stacked" ref={table}>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column.title} scope="col" class={column.isNumber ? 'number' : undefined}>
                  {column.title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {items.map((item) => (
              <tr key={keyOf(item)}>
                {columns.map(({ title: name, cell, isNumber, isAction }, index) =>
                  index === 0 ? (
                    <th key={name} scope="row">
                      {cell(item)}
                    </th>
                  ) : (
                    <td
                      key={name}
                      data-label={isAction ? undefined : name}
                      class={isNumber ? 'number' : undefined}
                    >
                      {cell(item)}
                    </td>
                  ),
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {file !== undefined && (
        <p class="save">
          <button
            type="button"
            class="plain small"
            onClick={() => table.current && saveFile(`${file}.csv`, csvOf(table.current))}
          >
            {sharedText.value.saveCsv}
          </button>
        </p>
      )}
    </>
  )
}

/** The shown rows by RFC 4180, with their heading, and without what can be pressed; the mark in front tells spreadsheets that it is UTF-8. */
const csvOf = ({ rows }: HTMLTableElement): Blob =>
  new Blob(
    [
      '\uFEFF',
      ...[...rows].map(({ cells }) => `${[...cells].map((cell) => quoted(textOf(cell))).join(',')}\r\n`),
    ],
    { type: 'text/csv' },
  )

/** Texts of a cell, with a blank between those of different elements. */
function textOf(cell: HTMLTableCellElement): string {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT)
  const texts = new Map<HTMLElement | null, string>()
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const { parentElement: element, nodeValue } = node
    if (!element?.closest('button')) texts.set(element, `${texts.get(element) ?? ''}${nodeValue ?? ''}`)
  }
  return [...texts.values()].join(' ').replace(/\s+/g, ' ').trim()
}

function quoted(text: string): string {
  // A spreadsheet takes a text that begins so for a formula.
  const isFormula = /^[-=+@]/.test(text) && !Number.isFinite(Number(text))
  return `"${isFormula ? "'" : ''}${text.replaceAll('"', '""')}"`
}
