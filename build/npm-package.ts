// Makes dist/edgehostctl-<version>.tgz, the command line for workstations that are not Debian: `npm install -g FILE` installs
// it. The same bytes on every machine.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { tarEnd, tarHeader, tarPadding } from '../src/archive/ustar.ts'
import { readBuildDate } from './build-date.ts'
import { documentNames, readDocument, version } from './layout.ts'
import { commandTable } from '../src/edgehostctl/nouns.ts'
import { manualPage, ofHost } from './manual.ts'
import { neededNode } from './needed-node.ts'

const root = resolve(import.meta.dirname, '..')

// The tarball does not contain the programs of support and config check, which work on the host they run on. The Debian package does.
const manifest = {
  name: 'edgehostctl',
  version,
  description: 'Shows and manages edge hosts: the command line of edgehostd',
  license: 'UNLICENSED',
  engines: { node: `>=${neededNode}` },
  // `definition` needs execve(2), which Windows does not have.
  os: ['!win32'],
  bin: { edgehostctl: 'edgehostctl.cjs' },
  man: ['edgehostctl.1'],
}

const read = (name: string) => readFileSync(`${root}/dist/${name}`)

/** What the archive contains, sorted; needs a finished `make build`. */
const files: Readonly<Record<string, string | Buffer>> = {
  'definition.cjs': read('definition.cjs'),
  ...Object.fromEntries(documentNames.map((name) => [`docs/${name}`, readDocument(name)])),
  'edgehostctl.1': manualPage({ table: commandTable, ...ofHost }),
  'edgehostctl.cjs': `#!/usr/bin/env node\n${read('edgehostctl.cjs').toString()}`,
  // Runs helm for `definition needs`.
  'execa.cjs': read('execa.cjs'),
  'package.json': `${JSON.stringify(manifest, null, 2)}\n`,
  're2js.cjs': read('re2js.cjs'),
  'third-party.txt': read('third-party.txt'),
  'yaml.cjs': read('yaml.cjs'),
}

const target = `${root}/dist/edgehostctl-${version}.tgz`
const archive = pack()
writeFileSync(target, archive)
const hash = createHash('sha256').update(archive).digest('hex')
console.log(`${hash}  ${target.slice(root.length + 1)}  ${Math.round(archive.length / 2 ** 10)} KiB`)

/** npm installs the files below package/. */
function pack(): Buffer {
  const date = readBuildDate() * 1_000
  const members = Object.entries(files).flatMap(([name, text]) => {
    const content = Buffer.from(text)
    const mode = name === manifest.bin.edgehostctl ? 0o755 : 0o644
    return [tarHeader(`package/${name}`, content.length, date, { mode }), content, tarPadding(content.length)]
  })
  return gzipSync(Buffer.concat([...members, tarEnd()]), { level: 9 })
}
