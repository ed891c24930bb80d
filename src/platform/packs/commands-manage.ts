import { amount, moment, oneLine, renderFacts, type Fact, type Column } from '../../ctl/layout.ts'
import { confirmDeletion } from '../../ctl/confirm.ts'
import { type Context, refusalOf, keepSession } from '../../ctl/client.ts'
import { understand, parseBody, readReply } from '../../ctl/reply.ts'
import type { PackSummary } from './schemas.ts'
import {
  findReadVersion,
  findVersion,
  packKind,
  findReadScopes,
  showScopes,
  type ScopeRow,
  findUid,
  projects,
} from '../commands/find.ts'
import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { memberHeader } from '../../archive/tar-member.ts'
import { tarEnd, tarPadding } from '../../archive/ustar.ts'
import { isNeverOfAPack } from '../../base/never-of-a-pack.ts'
import { printable } from '../../base/printable.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { streamForm } from '../../ctl/request-body.ts'
import { createMeter } from '../../ctl/output.ts'
import { systemReason } from '../../errors/system-reason.ts'

const layout: readonly Column<ScopeRow<PackSummary>>[] = [
  { title: 'NAME', read: ({ item }) => item.spec.name, isFlexible: true },
  { title: 'VERSION', read: ({ item }) => item.spec.version },
  { title: 'LAYER', read: ({ item }) => item.spec.layer },
  { title: 'PROJECT', read: ({ scope }) => scope.name, isFlexible: true },
  { title: 'SIZE', read: ({ item }) => amount(item.spec.sizeBytes) },
  { title: 'UPLOADED', read: ({ item }) => moment(item.metadata.creationTimestamp), isFlexible: true },
  { title: 'UID', read: ({ item }) => item.metadata.uid },
]

export const listPacks = showScopes<PackSummary>(packKind.path, layout, findReadScopes)

export async function showPack({ client, line, output }: Context<'project'>): Promise<undefined> {
  const { scope, item } = await findReadVersion<PackSummary>(
    client,
    packKind,
    line.arguments[0] ?? '',
    line.options.project,
  )
  await output.show(item, (paper) => renderFacts(factsOf(item, scope.name), paper))
  return undefined
}

function factsOf({ metadata, spec }: PackSummary, project: string): Fact[] {
  const { manifests } = spec
  return [
    { label: 'Name', lines: [spec.name] },
    { label: 'Version', lines: [spec.version] },
    { label: 'Display name', lines: [spec.displayName] },
    { label: 'Uid', lines: [metadata.uid] },
    ...(project === '' ? [] : [{ label: 'Project', lines: [project] }]),
    { label: 'Layer', lines: [[spec.layer, spec.addonType].filter(Boolean).join(', ')] },
    { label: 'Clouds', lines: [spec.cloudTypes.join(', ')] },
    ...(manifests.length === 0 ? [] : [{ label: 'Manifests', lines: manifests.map(({ name }) => name) }]),
    { label: 'Size', lines: [amount(spec.sizeBytes)] },
    { label: 'Digest', lines: [spec.digest] },
    { label: 'Uploaded', lines: [moment(metadata.creationTimestamp)] },
  ]
}

export async function deletePack({
  client,
  line,
  output,
  terminal,
}: Context<'project' | 'yes'>): Promise<undefined> {
  const found = await findVersion<PackSummary>(
    client,
    packKind,
    line.arguments[0] ?? '',
    line.options.project,
  )
  const name = understand(() => oneLine(`${found.item.spec.name} ${found.item.spec.version}`))
  if (line.options.yes === undefined) confirmDeletion(terminal, `The pack ${name} will go.`)
  await client.change('DELETE', found.pathOf())
  output.note(`The pack ${name} is deleted.`)
  return undefined
}

const readBytes = 262_144
// The largest pack is examined on a slow disk.
const examineMs = 1_800_000

/** An archive of a pack. */
interface PackArchive {
  readonly fileName: string
  readonly sizeBytes: number
  readonly content: () => AsyncIterable<Buffer>
}

export async function uploadPack({ client, line, output, target }: Context<'project'>): Promise<undefined> {
  const [path = ''] = line.arguments
  const { project } = line.options
  const archive = await openArchive(path).catch((error: unknown) => {
    if (error instanceof Failure) throw error
    throw refuse(path, `cannot be read: ${systemReason(error as NodeJS.ErrnoException)}`, error)
  })
  const scope = project === undefined ? '' : `?ProjectUid=${await findUid(client, projects, project)}`
  const meter = createMeter(process.stderr, output.note)
  const { type, body } = streamForm({ ...archive, parts: [], source: path, onSent: meter.sent })
  meter.begin(archive.sizeBytes, 0)
  const letSessionGo = target.kind === 'host' ? keepSession(client) : () => undefined
  try {
    const reply = await readReply(
      await client.open({
        method: 'POST',
        path: `${packKind.path}${scope}`,
        body,
        timeoutMs: examineMs,
        headers: { 'content-type': type },
      }),
    )
    if (reply.status !== 201) throw refusalOf(target, reply)
    const made = parseBody<{ uid: string }>(reply, ['uid'])
    meter.end()
    await output.show(made, () => `${oneLine(made.uid)}\n`)
  } finally {
    meter.end()
    letSessionGo()
  }
  return undefined
}

async function openArchive(path: string): Promise<PackArchive> {
  const info = await stat(path)
  const fileName = basename(resolve(path))
  if (info.isDirectory()) return openFolder(path, fileName)
  if (!info.isFile()) throw refuse(path, 'is neither a folder nor a file')
  return {
    fileName,
    sizeBytes: info.size,
    content: () => createReadStream(path, { highWaterMark: readBytes }) as AsyncIterable<Buffer>,
  }
}

async function openFolder(path: string, name: string): Promise<PackArchive> {
  const files: { readonly name: string; readonly size: number }[] = []
  const search = async (below: string): Promise<void> => {
    const entries = await readdir(join(path, below), { withFileTypes: true })
    for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
      if (isNeverOfAPack(entry.name)) continue
      const place = below === '' ? entry.name : `${below}/${entry.name}`
      if (entry.isDirectory()) await search(place)
      else if (entry.isFile()) files.push({ name: place, size: (await stat(join(path, place))).size })
      else throw refuse(join(path, place), 'is not a regular file; a pack has regular files and folders only')
    }
  }
  await search('')
  if (!files.some((file) => file.name === 'pack.json'))
    throw refuse(path, 'has no pack.json, so it is not the folder of a pack')
  async function* content() {
    for (const file of files) {
      yield memberHeader(file.name, file.size)
      const bytes = createReadStream(join(path, file.name), { highWaterMark: readBytes })
      let left = file.size
      for await (const chunk of bytes as AsyncIterable<Buffer>) {
        left -= chunk.length
        yield chunk
      }
      // All that follows would be at another place.
      if (left !== 0) throw new Failure('failed', `${printable(file.name)} was changed while it was sent`)
      yield tarPadding(file.size)
    }
    yield tarEnd()
  }
  const sizeBytes = files.reduce(
    (sum, { name: member, size }) => sum + memberHeader(member, size).length + size + tarPadding(size).length,
    tarEnd().length,
  )
  return { fileName: `${name}.tar`, sizeBytes, content }
}

const refuse = (path: string, why: string, cause?: unknown) =>
  new Failure('usage', `${printable(path)} ${why}`, { cause })
