// `cluster/needs` says which content a cluster needs, for the dry run of a host and for `edgehostctl definition needs`. `needs.ts` makes the
// list of what the preparation has found in the packs and of Kubernetes' own images; `kubernetes-images.ts` knows these without a kubeadm. Who
// looks for the content adds the entries that are there: `desired/preflight.ts` on a host, `authoring/needs.ts` in bundles.

import { shownPack } from '../desired/desired-state.ts'
import type { ContentNeed } from '../schemas.ts'
import type { KubernetesImage } from './kubernetes-images.ts'

/** An image that a pack names, and why it may not be needed. */
export interface NeededImage {
  readonly image: string
  /** Events of the hook of a chart that alone uses it, as `post-delete`. */
  readonly hook?: string
  /** Architectures of the nodes on which alone it is used, or `windows`. */
  readonly onlyOn?: readonly string[]
  /** Set if it was guessed from values, since a chart could not be rendered: whether its tag is known. */
  readonly guess?: { readonly isTagKnown: boolean }
  /** Set if its name has a variable without a value, which is written as `…`. */
  readonly isOpen?: true
}

/** What a pack needs of the content. */
export interface PackNeeds {
  /** `id` of the pack. */
  readonly pack: string
  /** Each once, sorted. */
  readonly images: readonly NeededImage[]
  /** Charts that the definition does not contain, as `name:version`. */
  readonly charts: readonly string[]
  /** Whether helm renders or installs something of it. */
  readonly usesHelm: boolean
}

/** A part of the content that a cluster needs. */
export interface Need {
  readonly kind: ContentNeed['kind']
  /** An image as it is pulled; the name of a chart or program. */
  readonly name: string
  /** Of a chart, or of a program that has to be of one version. */
  readonly version?: string
  readonly isOfKubernetes: boolean
  /** `id` of the packs that need it. */
  readonly packs: readonly string[]
  /** Whether a cluster is refused without it. */
  readonly isRequired: boolean
  /** Why it is in the list although nothing names it, or why it may not be needed. */
  readonly reason?: string
}

/** The names of programs that a cluster takes from the content: of its version of Kubernetes, and tools in their newest version. */
export const kubernetesPrograms = ['kubeadm', 'kubelet', 'kubectl'] as const
export const tools = ['helm', 'etcdctl'] as const

interface NeedsInput {
  readonly packs: readonly PackNeeds[]
  /** Undefined if the definition has none that is known. */
  readonly kubernetes: { readonly version: string; readonly images: readonly KubernetesImage[] } | undefined
  /** Of the host, as Go and OCI name it; undefined where it may be any. */
  readonly architecture?: string
}

/** The whole list: images, charts, programs; Kubernetes first. Pure. */
export function listNeeds({ packs, kubernetes, architecture }: NeedsInput): Need[] {
  return [
    ...listImages(packs, kubernetes?.images ?? [], architecture),
    ...listCharts(packs),
    ...(kubernetes ? listPrograms(packs, kubernetes.version) : []),
  ]
}

const pauseImage = /(?:^|\/)pause(?:[:@]|$)/

function listImages(
  packs: readonly PackNeeds[],
  kubernetes: readonly KubernetesImage[],
  architecture: string | undefined,
): Need[] {
  const own = new Map(kubernetes.map((each) => [each.image, each]))
  const users = new Map<string, { packs: string[]; images: NeededImage[] }>()
  for (const { pack, images } of packs)
    for (const image of images) {
      const known = users.get(image.image) ?? { packs: [], images: [] }
      users.set(image.image, { packs: [...known.packs, pack], images: [...known.images, image] })
    }
  return [...new Set([...own.keys(), ...users.keys()])].map((name): Need => {
    const used = users.get(name)
    const image = used && strongest(used.images)
    const base = { kind: 'image', name, isOfKubernetes: own.has(name), packs: used?.packs ?? [] } as const
    const ofKubernetes = own.get(name)
    if (ofKubernetes?.isTagKnown === false)
      return { ...base, isRequired: false, reason: 'tag not known; add its kubeadm' }
    if (ofKubernetes)
      return {
        ...base,
        isRequired: true,
        ...(pauseImage.test(name) ? { reason: 'containerd starts it for every pod; no pod names it' } : {}),
      }
    return { ...base, ...judge(image, architecture) }
  })
}

function judge(
  image: NeededImage | undefined,
  architecture: string | undefined,
): Pick<Need, 'isRequired' | 'reason'> {
  const { hook, onlyOn, guess, isOpen } = image ?? {}
  if (isOpen) return { isRequired: false, reason: 'not known: a variable in its name has no value' }
  if (guess)
    return {
      isRequired: false,
      reason: `guessed from values, since its chart was not rendered${guess.isTagKnown ? '' : '; tag not known'}`,
    }
  if (onlyOn && !(architecture !== undefined && onlyOn.includes(architecture)))
    return {
      isRequired: architecture === undefined && !onlyOn.includes('windows'),
      reason: `only on nodes with ${onlyOn.join(' or ')}`,
    }
  if (hook !== undefined) return { isRequired: true, reason: `only a hook of a chart uses it: ${hook}` }
  return { isRequired: true }
}

const weightOf = ({ hook, onlyOn, guess }: NeededImage) =>
  (guess ? 4 : 0) + (onlyOn ? 2 : 0) + (hook === undefined ? 0 : 1)

/** The one with the fewest reasons against it; of two with nodes of their own, one with the nodes of both. */
function strongest(images: readonly NeededImage[]): NeededImage | undefined {
  const [first] = images.toSorted((one, other) => weightOf(one) - weightOf(other))
  if (!first?.onlyOn) return first
  const same = images.filter((each) => weightOf(each) === weightOf(first))
  return { ...first, onlyOn: [...new Set(same.flatMap(({ onlyOn }) => onlyOn ?? []))].sort() }
}

/** Each image once, sorted; of several with one name the one with the fewest reasons against it. Pure. */
export function mergeImages(images: readonly NeededImage[]): NeededImage[] {
  const byName = Map.groupBy(images, ({ image }) => image)
  return [...byName.keys()].sort().flatMap((name) => strongest(byName.get(name) ?? []) ?? [])
}

function listCharts(packs: readonly PackNeeds[]): Need[] {
  const users = new Map<string, string[]>()
  for (const { pack, charts } of packs)
    for (const chart of charts) users.set(chart, [...(users.get(chart) ?? []), pack])
  return [...users].map(([chart, of]) => {
    const colon = chart.lastIndexOf(':')
    return {
      kind: 'chart',
      name: chart.slice(0, colon),
      version: chart.slice(colon + 1),
      isOfKubernetes: false,
      packs: of,
      isRequired: true,
    }
  })
}

function listPrograms(packs: readonly PackNeeds[], version: string): Need[] {
  const withHelm = packs.filter(({ usesHelm }) => usesHelm).map(({ pack }) => pack)
  const program = (name: string) => ({ kind: 'program', name }) as const
  const own = { isOfKubernetes: true, packs: [] }
  return [
    ...kubernetesPrograms.map((name) => ({ ...program(name), ...own, version, isRequired: true })),
    withHelm.length > 0
      ? { ...program('helm'), isOfKubernetes: false, packs: withHelm, isRequired: true }
      : { ...program('helm'), ...own, isRequired: false, reason: 'no pack has a chart or a template' },
    {
      ...program('etcdctl'),
      ...own,
      isRequired: false,
      reason: 'for administrators; the cluster runs without it',
    },
  ]
}

/** Who needs it, for people. */
export const originOf = ({ isOfKubernetes, packs }: Pick<Need, 'isOfKubernetes' | 'packs'>): string =>
  [...(isOfKubernetes ? ['Kubernetes'] : []), ...packs.map(shownPack)].join(', ')

/** A need as it is on the wire. */
export const shownNeed = (need: Need, found: Pick<ContentNeed, 'isThere' | 'sizeBytes'>): ContentNeed => {
  const { kind, name, version, isRequired, reason } = need
  return {
    kind,
    name,
    ...(version === undefined ? {} : { version }),
    origin: originOf(need),
    isRequired,
    ...(reason === undefined ? {} : { reason }),
    ...found,
  }
}
