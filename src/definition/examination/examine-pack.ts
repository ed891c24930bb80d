import { createHash } from 'node:crypto'
import { createReadStream, readFileSync } from 'node:fs'
import { readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { extractArchive, type Member } from '../../archive/extract.ts'
import { isNeverOfAPack } from '../../base/never-of-a-pack.ts'
import { withDefaults, type ArchiveLimits } from '../../archive/limits.ts'
import { refuse } from '../../archive/refusal.ts'
import { replaceFile, syncTree } from '../../system/files.ts'
import { createDiskRoom } from '../../upload/disk-room.ts'
import type { Pack, Problem } from '../definition.ts'
import { definitionFile, type DefinitionHead } from '../format/definition-file.ts'
import { formatVersion, pathPart, pathPartForm } from '../format/format.ts'
import { parseJson } from '../format/parse.ts'
import { readDefinition } from '../read/read-definition.ts'
import { isReadWhole } from '../read/read-pack.ts'
import { checkComposition } from '../rules/composition.ts'
import { logoText } from '../slots/details.ts'
import { importErrors } from '../codes.ts'
import { packContent, packReply, type ExaminedPack, type PackOrder } from './protocol.ts'
import { refuseErrors } from './examine.ts'

/**
 * Unpacks a pack, checks the form of its files as `definition build` does, and writes its folder and the reply of a platform about it, synced
 * to the disk.
 * @throws AppError why it is refused; the system's errors as they are
 */
export async function examinePack({ pack: order }: PackOrder): Promise<ExaminedPack> {
  const { file, folder, uid, reserveBytes } = order
  const limits = withDefaults(order.limits)
  const room = createDiskRoom({ folder, reserveBytes })
  const unpacked = join(folder, 'unpacked')
  const extracted = await extractArchive({
    source: createReadStream(file),
    folder: unpacked,
    limits,
    room,
    // Charts are not read here, and are needed whole.
    isData: (path) => !isReadWhole(path),
  })
  const members = await leaveOut(unpacked, extracted.members)
  requireWhole(members, limits)
  const root = findRoot([...members.keys()])
  const content = join(folder, packContent)
  await rename(join(unpacked, root), content)
  await rm(unpacked, { recursive: true, force: true })
  const files = new Map(
    [...members].map(([path, member]) => [path.slice(root === '' ? 0 : root.length + 1), member]),
  )

  const pack = await readForm(content, files, limits)
  const described = await readDescribed(content)
  const isLogo = pack.logo !== undefined && files.get('logo.png')?.isKept === true
  const reply = Buffer.from(
    JSON.stringify(
      replyOf(uid, pack, {
        ...described,
        readme: files.has('README.md') ? await readText(content, 'README.md') : undefined,
        logoUrl: isLogo ? logoText(readFileSync(join(content, 'logo.png'))) : '',
      }),
    ),
  )
  await room.take(reply.length)
  await replaceFile(join(folder, packReply), reply, 0o600)
  await syncTree(content)
  return {
    name: pack.name,
    version: pack.version,
    displayName: pack.displayName,
    layer: pack.layer,
    addonType: textOf(described.addonType),
    addonSubType: textOf(described.addonSubType),
    group: textOf(described.group),
    eol: textOf(described.eol),
    cloudTypes: textsOf(described.cloudTypes),
    annotations: annotationsOf(described.annotations),
    manifests: pack.manifests.map(({ place }) => place.split('/').at(-1) ?? ''),
    digest: digestOf(files),
    sizeBytes: [...files.values()].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  }
}

/** Removes files that are never of a pack. @returns the others */
async function leaveOut(
  folder: string,
  members: ReadonlyMap<string, Member>,
): Promise<ReadonlyMap<string, Member>> {
  const isLeftOut = (path: string) => path.split('/').some(isNeverOfAPack)
  for (const path of members.keys()) if (isLeftOut(path)) await rm(join(folder, path), { force: true })
  return new Map([...members].filter(([path]) => !isLeftOut(path)))
}

/** A text that exceeds its limit was not written, and a definition with it would be refused. */
function requireWhole(members: ReadonlyMap<string, Member>, limits: ArchiveLimits): void {
  for (const [path, { isKept, sizeBytes }] of members) {
    if (isKept) continue
    if (sizeBytes > limits.textBytes)
      throw refuse(
        'MemberTooLarge',
        path,
        `has ${sizeBytes} bytes; ${limits.textBytes} are allowed for a file that is not itself an archive`,
      )
    throw refuse(
      'TooLarge',
      path,
      `is where the files exceed the ${limits.allTextBytes} bytes that are allowed for all that are not archives`,
    )
  }
}

/** The folder of the archive that is the pack: the archive itself, or the one folder in it. @returns empty for the archive itself */
function findRoot(paths: readonly string[]): string {
  if (paths.includes('pack.json')) return ''
  const [top, ...others] = new Set(paths.map((path) => path.split('/')[0] ?? ''))
  if (top !== undefined && others.length === 0 && paths.includes(`${top}/pack.json`)) return top
  refuseErrors(importErrors.PackInvalid, [
    problem(
      'MemberMissing',
      'pack.json',
      'is neither at the top of the archive nor in the one folder there; pack the folder of one pack',
    ),
  ])
  return ''
}

/** Reads the pack as a definition with nothing else, since it becomes a part of one. */
async function readForm(
  folder: string,
  files: ReadonlyMap<string, Member>,
  limits: ArchiveLimits,
): Promise<Pack> {
  const place = 'packs/pack/'
  const head: DefinitionHead = {
    formatVersion,
    name: '',
    version: '',
    description: '',
    profiles: [],
    sums: new Map(),
  }
  const { definition, problems } = await readDefinition(
    {
      head,
      members: new Map([...files].map(([path, member]) => [`${place}${path}`, member])),
      content: (path) => readFile(join(folder, path.slice(place.length))),
    },
    limits,
  )
  const [pack] = definition.packs
  const found = [...problems]
  checkComposition(definition, (code, at, message) => {
    if (code === 'VersionInvalid' && !at.startsWith(definitionFile)) found.push(problem(code, at, message))
  })
  if (pack && !(pathPart.test(pack.name) && pathPart.test(pack.version)))
    found.push(problem('FieldInvalid', 'pack.json', `has a name or a version that is not ${pathPartForm}`))
  refuseErrors(
    importErrors.PackInvalid,
    found.map((each) => ({ ...each, place: each.place.replace(place, '') })),
  )
  if (pack === undefined) throw new Error('a pack without a problem was not read')
  return pack
}

/** Fields of pack.json beside the ones that a definition needs; of any form. */
interface Described {
  readonly addonType?: unknown
  readonly addonSubType?: unknown
  readonly group?: unknown
  readonly eol?: unknown
  readonly cloudTypes?: unknown
  readonly annotations?: unknown
}

/** @throws AppError PackInvalid */
async function readDescribed(folder: string): Promise<Described> {
  const { value, problems } = parseJson('pack.json', await readText(folder, 'pack.json'))
  refuseErrors(importErrors.PackInvalid, problems)
  return value as Described
}

/** Without the byte order mark that an editor may write. */
const readText = async (folder: string, name: string) =>
  new TextDecoder().decode(await readFile(join(folder, name)))

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
const annotationsOf = (value: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(typeof value === 'object' && value !== null ? value : {}).flatMap(([key, text]) =>
      typeof text === 'string' ? [[key, text]] : [],
    ),
  )

function replyOf(
  uid: string,
  pack: Pack,
  described: Described & { readonly readme: string | undefined; readonly logoUrl: string },
) {
  const group = textOf(described.group)
  return {
    name: pack.name,
    displayName: pack.displayName,
    layer: pack.layer,
    addonType: textOf(described.addonType),
    addonSubType: textOf(described.addonSubType),
    cloudTypes: textsOf(described.cloudTypes),
    logoUrl: described.logoUrl,
    registryUid: '',
    packValues: [
      {
        packUid: uid,
        annotations: annotationsOf(described.annotations),
        dependencies: pack.dependencies.map(({ packName, minVersion }) => ({
          name: packName,
          version: minVersion,
        })),
        presets: pack.presets,
        readme: described.readme ?? '',
        values: pack.values ?? '',
      },
    ],
    tags: [{ packUid: uid, tag: pack.version, version: pack.version, group }],
  }
}

function digestOf(files: ReadonlyMap<string, Member>): string {
  const hash = createHash('sha256')
  const sorted = [...files].sort(([one], [other]) => Buffer.compare(Buffer.from(one), Buffer.from(other)))
  for (const [path, { sha256 }] of sorted) hash.update(`${sha256}  ${path}\n`)
  return hash.digest('hex')
}

const problem = (code: string, place: string, message: string): Problem => ({
  code,
  severity: 'error',
  place,
  message,
})
