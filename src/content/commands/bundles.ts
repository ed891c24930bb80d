import type { Bundle, BundleEntry, BundleDeletion, ContentUpload, ContentUsage } from '../schemas.ts'
import type { Context } from '../../ctl/client.ts'
import {
  renderFacts,
  type Fact,
  renderTable,
  type Column,
  moment,
  plural,
  oneLine,
  span,
  amount,
} from '../../ctl/layout.ts'
import { parseLimit, filterOf, showList } from '../../ctl/list.ts'
import { confirmDeletion } from '../../ctl/confirm.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { parseBody, understand } from '../../ctl/reply.ts'

const bundlesPath = '/v1/edge-mgmt/content/bundles'
/** Path of a bundle. @param uid as it was typed */
export const bundlePath = (uid: string) => `${bundlesPath}/${encodeURIComponent(uid)}`

const bundleLayout: readonly Column<Bundle>[] = [
  { title: 'UID', read: ({ uid }) => uid },
  { title: 'NAME', read: ({ name }) => name, isFlexible: true },
  { title: 'PUBLISHED', read: ({ publishedAt }) => moment(publishedAt), isFlexible: true },
  { title: 'SIZE', read: ({ sizeBytes }) => amount(sizeBytes) },
  { title: 'IMAGES', read: ({ images }) => String(images) },
  { title: 'ARCHITECTURES', read: ({ architectures }) => architectures.join(', '), isFlexible: true },
  {
    title: 'STATE',
    read: (bundle) =>
      [
        bundle.damagedBlobs > 0 ? 'damaged' : '',
        bundle.isForeign ? 'other architecture' : '',
        bundle.isPinned ? 'in use' : '',
      ]
        .filter(Boolean)
        .join(', '),
    isFlexible: true,
  },
]

/** `edgehostctl content list`. */
export const listBundles = showList<Bundle>(bundlesPath, bundleLayout)

type Platform = BundleEntry['platforms'][number]

const entryLayout: readonly Column<BundleEntry>[] = [
  { title: 'KIND', read: ({ kind }) => kind },
  { title: 'NAME', read: titleOfEntry, isFlexible: true },
  {
    title: 'TAG',
    read: ({ tag, hasTag }) => (tag === '' ? '' : hasTag ? 'leads here' : 'leads to a newer bundle'),
    isFlexible: true,
  },
  { title: 'PLATFORMS', read: ({ platforms }) => platformsOf(platforms, true), isFlexible: true },
  { title: 'NOT HERE', read: ({ platforms }) => platformsOf(platforms, false), isFlexible: true },
  { title: 'SIZE', read: ({ sizeBytes }) => amount(sizeBytes) },
  { title: 'DIGEST', read: ({ digest }) => digest.slice(0, 'sha256:'.length + 12) },
]

/** `edgehostctl content show`: a bundle and its entries. */
export async function showBundle({ client, line, output }: Context<'limit' | 'filter'>): Promise<undefined> {
  const path = bundlePath(line.arguments[0] ?? '')
  const limit = parseLimit(line, 0)
  const bundle = await client.get<Bundle>(path, ['uid', 'name', 'indexDigest'])
  const { items: entries } = await client.list<BundleEntry>(`${path}/entries`, { ...filterOf(line) }, limit)
  await output.show({ ...bundle, entries }, (paper) => {
    const facts = renderFacts(factsOfBundle(bundle), paper)
    return entries.length > 0 ? `${facts}\n${renderTable(entries, entryLayout, paper.columns)}` : facts
  })
  return undefined
}

function factsOfBundle(bundle: Bundle): Fact[] {
  const { fileName, fileSizeBytes, sizeBytes, blobCount, architectures, definition } = bundle
  const fact = (label: string, text: string, mood?: Fact['mood']): Fact => ({
    label,
    lines: [text],
    ...(mood === undefined ? {} : { mood }),
  })
  return [
    fact('Bundle', bundle.name || '-'),
    fact('UID', bundle.uid),
    fact('Identity', bundle.indexDigest),
    fact('Published', moment(bundle.publishedAt)),
    ...(fileName === '' ? [] : [fact('File', `${fileName}, ${amount(fileSizeBytes)}`)]),
    fact('Blobs', `${plural(blobCount, 'blob')} of ${amount(sizeBytes)}`),
    fact(
      'Architectures',
      `${architectures.join(', ') || '-'}${bundle.isForeign ? ', but not that of this host' : ''}`,
      bundle.isForeign ? 'warning' : undefined,
    ),
    ...(definition ? [fact('Definition', `${definition.digest}, ${amount(definition.sizeBytes)}`)] : []),
    ...(bundle.holders.length > 0 ? [fact('Needed by', bundle.holders.join(', '))] : []),
    ...(bundle.damagedBlobs > 0
      ? [fact('Damage', `${plural(bundle.damagedBlobs, 'blob')}; upload the bundle again`, 'bad')]
      : []),
  ]
}

/** Title by which an entry is found. */
function titleOfEntry({ name, tag, title, version, digest }: BundleEntry): string {
  if (name !== '') return tag === '' ? name : `${name}:${tag}`
  if (title !== '') return version === '' ? title : `${title} ${version}`
  return digest
}

const platformsOf = (platforms: readonly Platform[], isCarried: boolean) =>
  platforms
    .filter((each) => each.isCarried === isCarried)
    .map(({ os, architecture, variant }) => [os, architecture, variant].filter(Boolean).join('/'))
    .join(', ')

/** `edgehostctl content delete`: lists what goes, and deletes it after a yes. */
export async function deleteBundle({
  client,
  line,
  output,
  terminal,
}: Context<'yes' | 'dry-run'>): Promise<undefined> {
  const path = bundlePath(line.arguments[0] ?? '')
  const isDryRun = line.options['dry-run'] !== undefined
  const reply = await client.change('DELETE', `${path}?dryRun=true`)
  const plan = parseBody<BundleDeletion>(reply, ['uid', 'name', 'entries', 'blobs', 'sizeBytes', 'holders'])
  if (!isDryRun) {
    const question = understand(() => {
      refuseNeeded(plan)
      return `The bundle ${oneLine(titleOfDeletion(plan))} goes, with ${describeLoss(plan)} that no other bundle has.`
    })
    if (line.options.yes === undefined) confirmDeletion(terminal, question)
    await client.change('DELETE', path)
  }
  await output.show(plan, (paper) =>
    renderFacts(
      [
        { label: 'Bundle', lines: [titleOfDeletion(plan)] },
        { label: isDryRun ? 'Would go' : 'Deleted', lines: [describeLoss(plan)] },
        ...(plan.holders.length > 0
          ? [{ label: 'Needed by', lines: [plan.holders.join(', ')], mood: 'warning' as const }]
          : []),
      ],
      paper,
    ),
  )
  return undefined
}

const describeLoss = ({ entries, blobs, sizeBytes }: BundleDeletion) =>
  `${plural(entries, 'entry', 'entries')} and ${plural(blobs, 'blob')} of ${amount(sizeBytes)}`

const titleOfDeletion = ({ name, uid }: BundleDeletion) => (name === '' ? uid : `${name} (${uid})`)

function refuseNeeded(plan: BundleDeletion): void {
  if (plan.holders.length === 0) return
  const needing = oneLine(plan.holders.join(', '))
  throw new Failure(
    'failed',
    `the bundle ${oneLine(titleOfDeletion(plan))} is needed by ${needing}; nothing was deleted`,
  )
}

const uploadsPath = '/v1/edge-mgmt/content/uploads'

const uploadLayout: readonly Column<ContentUpload>[] = [
  { title: 'UID', read: ({ uid }) => uid },
  { title: 'NAME', read: ({ name }) => name, isFlexible: true },
  { title: 'PHASE', read: ({ phase }) => phase },
  { title: 'RECEIVED', read: ({ receivedBytes }) => amount(receivedBytes) },
  { title: 'TOTAL', read: ({ totalBytes }) => (totalBytes === undefined ? undefined : amount(totalBytes)) },
  {
    title: 'LEFT',
    read: ({ remainingSeconds }) => (remainingSeconds === undefined ? undefined : span(remainingSeconds)),
  },
  { title: 'LAST ACTIVITY', read: ({ lastActivityAt }) => moment(lastActivityAt), isFlexible: true },
]

/** `edgehostctl content uploads`. */
export const listUploads = showList<ContentUpload>(uploadsPath, uploadLayout)

/** `edgehostctl content discard`. */
export async function discardUpload({ client, line, output }: Context): Promise<undefined> {
  const [uid = ''] = line.arguments
  await client.change('DELETE', `${uploadsPath}/${encodeURIComponent(uid)}`)
  output.note('The upload is gone, and what the host had of it.')
  return undefined
}

/** `edgehostctl content usage`. */
export async function showUsage({ client, output }: Context): Promise<undefined> {
  const usage = await client.get<ContentUsage>('/v1/edge-mgmt/content/usage', ['bundles', 'fileSystem'])
  await output.show(usage, (paper) => renderFacts(factsOfUsage(usage), paper))
  return undefined
}

function factsOfUsage(usage: ContentUsage): Fact[] {
  const { directory, mountPoint, type, totalBytes, freeBytes, reserveBytes, reservedBytes, availableBytes } =
    usage.fileSystem
  const damaged: Fact[] =
    usage.damagedBlobs > 0
      ? [
          {
            label: 'Damaged',
            lines: [
              `${plural(usage.damagedBlobs, 'blob')} of ${amount(usage.damagedBytes)}; upload again the bundles that edgehostctl content list shows as damaged`,
            ],
            mood: 'bad',
          },
        ]
      : []
  const incomplete: Fact[] = usage.isComplete
    ? []
    : [
        {
          label: 'Records',
          lines: [
            'the record of a bundle is damaged, so no content is removed: journalctl -u edgehostd -p warning',
          ],
          mood: 'bad',
        },
      ]
  return [
    { label: 'Bundles', lines: [`${usage.bundles}, ${amount(usage.bundleBytes)} in all`] },
    {
      label: 'Stored',
      lines: [`${amount(usage.storedBytes)}; shared blobs save ${amount(usage.sharedBytes)}`],
    },
    { label: 'Unfinished', lines: [`uploads of ${amount(usage.uploadBytes)}`] },
    ...damaged,
    ...incomplete,
    { label: 'Folder', lines: [directory] },
    {
      label: 'File system',
      lines: [`${type} on ${mountPoint}, ${amount(totalBytes)}, ${amount(freeBytes)} free`],
    },
    {
      label: 'Kept free',
      lines: [`${amount(reserveBytes)}; running uploads still need ${amount(reservedBytes)}`],
    },
    {
      label: 'Available',
      lines: [`${amount(availableBytes)} for a new upload`],
      ...(availableBytes > 0 ? {} : { mood: 'warning' as const }),
    },
  ]
}
