import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { bundleArchiveLimits } from '../../../src/archive/limits.ts'
import { bundleLimits, reasons } from '../../../src/content/format/refusal.ts'
import { annotations, artifactTypes, mediaTypes } from '../../../src/content/format/media-types.ts'

const document = readFileSync(new URL('../../../docs/bundle-format.md', import.meta.url), 'utf8')
/** The cells of each line of a table. */
const rows = document
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .map((line) => line.split('|').map((cell) => cell.trim()))

it('the document lists every reason below its code, and no other one', () => {
  let code = ''
  const listed = rows
    .slice(rows.findIndex(([, first]) => first === '`BundleInvalid`'))
    .map(([, first = '', reason = '']) => {
      if (first !== '') code = first
      return [reason.replaceAll('`', ''), code.replaceAll('`', '')]
    })
  expect(Object.fromEntries(listed)).toEqual(reasons)
})

it('the document has the limits of the code', () => {
  const found = Object.fromEntries(rows.map(([, what = '', most = '']) => [what, most]))
  const MiB = 2 ** 20
  const number = (value: number) => value.toLocaleString('en')
  expect(found).toMatchObject({
    '`index.json`': `${bundleLimits.indexFileBytes / MiB} MiB`,
    'an index or a manifest': `${bundleLimits.documentBytes / MiB} MiB`,
    'descriptors in one index or manifest': number(bundleLimits.descriptors),
    'indexes and manifests of a bundle': number(bundleLimits.documents),
    'blobs of a bundle': number(bundleLimits.blobs),
    'platforms, files and blobs of all entries, shared ones counted for each entry': number(
      bundleLimits.steps,
    ),
    'levels of indexes and manifests below `index.json`': `${bundleLimits.depth}`,
    'a configuration of which platform and time are read': `${bundleLimits.configBytes / MiB} MiB`,
    'a blob, and a whole bundle': `${bundleArchiveLimits.unpackedBytes / 2 ** 40} TiB`,
    'unpacked size compared with the size of the file, from 1 GiB on': `${number(bundleArchiveLimits.ratio)} : 1`,
  })
  expect(bundleArchiveLimits).toMatchObject({
    memberBytes: bundleArchiveLimits.unpackedBytes,
    ratioFreeBytes: 2 ** 30,
    zstdWindowLog: 27,
  })
})

it.each([
  ...Object.values(artifactTypes).filter((type) => type !== artifactTypes.definition),
  annotations.imageName,
  annotations.refName,
  annotations.baseName,
  annotations.title,
  annotations.version,
  annotations.contentType,
  mediaTypes.chartConfig,
  mediaTypes.chartContent,
  mediaTypes.config,
  mediaTypes.dockerConfig,
  mediaTypes.fileContent,
])('the document names %s', (text) => {
  expect(document).toContain(text)
})
