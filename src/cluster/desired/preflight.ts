import type { PreflightProblem } from './preflight-codes.ts'
import type { Prepared } from './prepared.ts'
import { createHideOf } from '../../definition/slots/secrets.ts'
import type { Logger } from '../../system/log.ts'
import { sensitiveValues } from './configuration.ts'
import { unknownPack } from './version.ts'
import type { Engine } from '../engine/engine.ts'
import type { ClusterHost } from '../host/cluster-host.ts'
import type { DesiredState } from './desired-state.ts'
import type { ContentAccess } from '../../content/store/find.ts'
import type { KubernetesImage } from '../needs/kubernetes-images.ts'
import { listNeeds, originOf, shownNeed, type Need, type PackNeeds } from '../needs/needs.ts'
import type { ContentNeed } from '../schemas.ts'
import type { ProgramName, Programs } from '../engine/programs.ts'

/** Content that a cluster needs. */
interface ContentNeeds {
  readonly packs: readonly PackNeeds[]
  readonly kubernetes: { readonly version: string; readonly images: readonly KubernetesImage[] }
}

interface ContentFound {
  /** All that is needed, and what of it is here. */
  readonly needs: readonly ContentNeed[]
  /** Images that are missing, damaged, or not for the architecture of this host, each with the pack that needs it. */
  readonly problems: readonly PreflightProblem[]
  /** Digests of the images that were found, for `content.pin`. */
  readonly digests: readonly string[]
}

/** The content part of the pre-flight. */
interface ContentPreflight {
  check(needs: ContentNeeds): Promise<ContentFound>
}

interface CollectOptions {
  readonly engine: Pick<Engine, 'packs' | 'preflight' | 'images' | 'contentOf'>
  readonly host: Pick<ClusterHost, 'preflight'>
  readonly content: ContentPreflight
  readonly log: Logger
}

export interface Preflight {
  /** Errors before warnings, and missing programs of the operating system before other problems. */
  readonly problems: readonly PreflightProblem[]
  readonly isPossible: boolean
  /** The content that the cluster needs; empty where its Kubernetes pack is unknown. */
  readonly needs: readonly ContentNeed[]
  /** Digests of the images, programs and charts in the content that the cluster needs, as far as they were found. */
  readonly digests: readonly string[]
}

/** Makes all checks at once, and reports everything that they find; the reports may contain sensitive values, the log does not. */
export function createPreflight({ engine, host, content, log }: CollectOptions) {
  /**
   * @param posted findings of the posted configuration
   * @param running the running cluster of this host, for a change of it
   */
  return async function collect(
    { desired, variables, derived, problems: prepared, needs: packs, chartDigests }: Prepared,
    posted: readonly PreflightProblem[],
    signal: AbortSignal,
    running?: DesiredState,
  ): Promise<Preflight> {
    const hide = createHideOf(sensitiveValues({ variables, derived }))
    /** A check that cannot be made is a finding too. */
    async function check(
      what: string,
      work: () => Promise<readonly PreflightProblem[]>,
    ): Promise<readonly PreflightProblem[]> {
      try {
        return await work()
      } catch (error) {
        signal.throwIfAborted()
        log.warn(
          { what, stack: hide(String((error as Error).stack)) },
          'a pre-flight check could not be made',
        )
        const message = `${what} could not be checked: ${(error as Error).message}`
        return [{ code: 'CheckFailed', severity: 'error', message }]
      }
    }
    const isWhole = !prepared.some(isError)
    const { pack } = desired.kubernetes
    if (isWhole && !engine.packs.includes(pack))
      return reportOf([
        ...prepared,
        ...posted,
        {
          code: 'KubernetesUnknown',
          severity: 'error',
          message: unknownPack(pack, engine.packs),
        },
      ])
    const { version } = desired.kubernetes
    // Without a kubeadm of that version they are known all the same. Loaded here: a start does not need yaml.
    const { kubernetesImages } = await import('../needs/kubernetes-images.ts')
    let images = version === '' ? [] : kubernetesImages(desired.kubernetes)
    const ofHost = check('this host', () => host.preflight(desired, signal, running))
    const [ofEngine, ofImageList] = await Promise.all([
      check('Kubernetes', () => engine.preflight(desired, signal)),
      check('the images of Kubernetes', async () => {
        images = (await engine.images(desired, signal)).map((image) => ({ image, isTagKnown: true }))
        return []
      }),
    ])
    // The failure of its programs is among the findings of the engine then.
    const ofImages = ofEngine.some(isError) ? [] : ofImageList
    let digests: readonly string[] = []
    let needs: readonly ContentNeed[] = []
    const ofContent = await check('the content', async () => {
      const found = await content.check({ packs, kubernetes: { version, images } })
      needs = found.needs
      digests = [...found.digests, ...chartDigests, ...(await engine.contentOf(desired))]
      return found.problems
    })
    // An incomplete preparation makes these checks fail for a reason that is reported already.
    const checked = [...(await ofHost), ...ofEngine, ...ofImages, ...ofContent].filter(
      ({ code }) => isWhole || code !== 'CheckFailed',
    )
    return { ...reportOf([...prepared, ...posted, ...checked]), needs, digests }
  }
}

const isError = ({ severity }: PreflightProblem) => severity === 'error'

/** Errors before warnings; of each, what the operating system lacks comes first, since it is installed before all else. */
const reportOf = (problems: readonly PreflightProblem[]): Preflight => ({
  problems: problems.toSorted((one, other) => rankOf(one) - rankOf(other)),
  isPossible: !problems.some(isError),
  needs: [],
  digests: [],
})

const rankOf = (problem: PreflightProblem) =>
  (isError(problem) ? 0 : 2) + (problem.code === 'HostProgramMissing' ? 0 : 1)

interface ContentPreflightOptions {
  readonly content: Pick<ContentAccess, 'find'>
  readonly programs: Pick<Programs, 'find'>
  /** Of this host, as OCI names it: amd64, arm64. */
  readonly architecture: string
}

type FoundEntry = Awaited<ReturnType<ContentAccess['find']>>

/** Looks in the content for what a cluster needs; each image once. */
export function createContentPreflight(options: ContentPreflightOptions): ContentPreflight {
  const { content, programs, architecture } = options

  /** Problem of an image; undefined if a container can be started from it. */
  function judge(image: string, found: FoundEntry) {
    if (!found)
      return {
        code: 'ImageMissing',
        message: `image ${image} is in no content bundle of this host; upload a bundle that has it`,
      } as const
    const { name } = found.bundle
    if (!found.isWhole)
      return {
        code: 'ImageDamaged',
        message: `image ${image} is in the bundle ${name}, of which a blob is damaged; upload the bundle again`,
      } as const
    const fits = found.platforms.some(
      (each) => each.os === 'linux' && each.architecture === architecture && each.isCarried,
    )
    if (fits || found.platforms.length === 0) return undefined
    const carried = found.platforms.filter(({ isCarried }) => isCarried).map((each) => each.architecture)
    const has =
      carried.length === 0 ? 'no platform of it whole' : `it for ${[...new Set(carried)].join(', ')}`
    return {
      code: 'ImageForeign',
      message: `image ${image} is not for ${architecture}: the bundle ${name} has ${has}; upload a bundle with it for ${architecture}`,
    } as const
  }

  async function find({ kind, name, version }: Need): Promise<Pick<ContentNeed, 'isThere' | 'sizeBytes'>> {
    if (kind === 'program') {
      const source = await programs.find(name as ProgramName, version)
      if (source.kind !== 'content') return { isThere: source.kind === 'host' }
      const sizeBytes = source.found.files.reduce((sum, file) => sum + file.sizeBytes, 0)
      return { isThere: true, sizeBytes }
    }
    const found = await content.find(`${name}:${version}`, kind)
    return found?.isWhole ? { isThere: true, sizeBytes: found.sizeBytes } : { isThere: false }
  }

  return {
    async check(input: ContentNeeds): Promise<ContentFound> {
      const digests = new Set<string>()
      const problems: PreflightProblem[] = []
      const needs: ContentNeed[] = []
      for (const need of listNeeds({ ...input, architecture })) {
        if (need.kind !== 'image') {
          needs.push(shownNeed(need, await find(need)))
          continue
        }
        const found = await content.find(need.name, 'image')
        const problem = judge(need.name, found)
        const isThere = problem === undefined
        needs.push(shownNeed(need, { isThere, ...(found ? { sizeBytes: found.sizeBytes } : {}) }))
        if (found && need.isRequired) digests.add(found.digest)
        // A program or chart that is missing is reported by who needs it.
        if (isThere || !need.isRequired) continue
        const [pack] = need.packs
        problems.push({
          code: problem.code,
          severity: 'error',
          message: `${problem.message} (needed by ${originOf(need)})`,
          ...(pack === undefined ? {} : { pack }),
        })
      }
      return { problems, needs, digests: [...digests] }
    },
  }
}
