import { readdirSync, readFileSync } from 'node:fs'

/** What a tool wrote, without its layers. */
export interface RecordedLayout {
  /** Tool, version and command. */
  readonly made: string
  /** index.json */
  readonly index: string
  /** Blobs that are JSON, by hex. */
  readonly blobs: Readonly<Record<string, string>>
  /** Sizes of the other ones. */
  readonly layers: Readonly<Record<string, number>>
}

const folder = new URL('../fixtures/bundle-layouts/', import.meta.url)

/** Names of the files in test/fixtures/bundle-layouts. */
export const recordedLayouts = readdirSync(folder)

export const readRecorded = (file: string) =>
  JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as RecordedLayout
