import type { Bundle, BundleEntry } from '../schemas.ts'
import type { Context } from '../../ctl/context.ts'
import { renderFacts, type Fact } from '../../ctl/facts.ts'
import { parseLimit } from '../../ctl/limit.ts'
import { filterOf, showList } from '../../ctl/list.ts'
import { renderTable, type Column } from '../../ctl/table.ts'
import { moment, plural } from '../../ctl/text.ts'
import { amount } from '../../ctl/amount.ts'

const bundlesPath = '/v1/edge-mgmt/content/bundles'
/** Path of a bundle. @param uid as it was typed */
export const bundlePath = (uid: string) => `${bundlesPath}/${encodeURIComponent(uid)}`

const layout: readonly Column<Bundle>[] = [
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
export const listBundles = showList<Bundle>(bundlesPath, layout)

type Platform = BundleEntry['platforms'][number]

const entryLayout: readonly Column<BundleEntry>[] = [
  { title: 'KIND', read: ({ kind }) => kind },
  { title: 'NAME', read: titleOf, isFlexible: true },
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
    const facts = renderFacts(factsOf(bundle), paper)
    return entries.length > 0 ? `${facts}\n${renderTable(entries, entryLayout, paper.columns)}` : facts
  })
  return undefined
}

function factsOf(bundle: Bundle): Fact[] {
  const { fileName, fileSizeBytes, sizeBytes, blobCount, architectures, definition } = bundle
  const fact = (label: string, text: string, mood?: Fact['mood']): Fact => ({
    ...{ label, lines: [text] },
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

/** How an entry is found. */
function titleOf({ name, tag, title, version, digest }: BundleEntry): string {
  if (name !== '') return tag === '' ? name : `${name}:${tag}`
  if (title !== '') return version === '' ? title : `${title} ${version}`
  return digest
}

const platformsOf = (platforms: readonly Platform[], isCarried: boolean) =>
  platforms
    .filter((each) => each.isCarried === isCarried)
    .map(({ os, architecture, variant }) => [os, architecture, variant].filter(Boolean).join('/'))
    .join(', ')
