import type { PreflightProblem } from './preflight-codes.ts'
import type { PackImages, Prepared } from './prepared.ts'
import { createHideOf } from '../../definition/slots/secrets.ts'
import type { Logger } from '../../system/log.ts'
import { sensitiveValues } from './configuration.ts'
import { unknownPack } from './version.ts'
import type { Engine } from '../engine/engine.ts'
import type { ClusterHost } from '../host/cluster-host.ts'
import { type DesiredState, shownPack } from './desired-state.ts'
import type { ContentAccess } from '../../content/store/find.ts'

/** Content that a cluster needs. */
interface ContentNeeds {
  readonly packs: readonly PackImages[]
  /** Images of Kubernetes itself: `Engine.images`. */
  readonly kubernetesImages: readonly string[]
}

interface ContentFound {
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
    { desired, variables, derived, problems: prepared, images, chartDigests }: Prepared,
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
    let kubernetesImages: readonly string[] = []
    const ofHost = check('this host', () => host.preflight(desired, signal, running))
    const [ofEngine, ofImageList] = await Promise.all([
      check('Kubernetes', () => engine.preflight(desired, signal)),
      check('the images of Kubernetes', async () => {
        kubernetesImages = await engine.images(desired, signal)
        return []
      }),
    ])
    // The failure of its programs is among the findings of the engine then.
    const ofImages = ofEngine.some(isError) ? [] : ofImageList
    let digests: readonly string[] = []
    const ofContent = await check('the content', async () => {
      const found = await content.check({ packs: images, kubernetesImages })
      digests = [...found.digests, ...chartDigests, ...(await engine.contentOf(desired))]
      return found.problems
    })
    // An incomplete preparation makes these checks fail for a reason that is reported already.
    const checked = [...(await ofHost), ...ofEngine, ...ofImages, ...ofContent].filter(
      ({ code }) => isWhole || code !== 'CheckFailed',
    )
    return { ...reportOf([...prepared, ...posted, ...checked]), digests }
  }
}

const isError = ({ severity }: PreflightProblem) => severity === 'error'

/** Errors before warnings; of each, what the operating system lacks comes first, since it is installed before all else. */
const reportOf = (problems: readonly PreflightProblem[]): Preflight => ({
  problems: problems.toSorted((one, other) => rankOf(one) - rankOf(other)),
  isPossible: !problems.some(isError),
  digests: [],
})

const rankOf = (problem: PreflightProblem) =>
  (isError(problem) ? 0 : 2) + (problem.code === 'HostProgramMissing' ? 0 : 1)

interface ContentPreflightOptions {
  readonly content: Pick<ContentAccess, 'find'>
  /** Of this host, as OCI names it: amd64, arm64. */
  readonly architecture: string
}

/** Looks in the content for the images that a cluster needs; each image once. */
export function createContentPreflight({ content, architecture }: ContentPreflightOptions): ContentPreflight {
  /** Problem of an image; undefined if a container can be started from it. */
  async function judge(image: string, digests: Set<string>) {
    const found = await content.find(image, 'image')
    if (!found)
      return {
        code: 'ImageMissing',
        message: `image ${image} is in no content bundle of this host; upload a bundle that has it`,
      } as const
    digests.add(found.digest)
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

  return {
    async check({ packs, kubernetesImages }: ContentNeeds): Promise<ContentFound> {
      const digests = new Set<string>()
      const wantedBy = new Map<string, string[]>()
      for (const { pack, images } of packs)
        for (const image of images) wantedBy.set(image, [...(wantedBy.get(image) ?? []), pack])
      const problems: PreflightProblem[] = []
      for (const image of new Set([...kubernetesImages, ...wantedBy.keys()])) {
        const problem = await judge(image, digests)
        if (!problem) continue
        const { code, message } = problem
        const wanting = wantedBy.get(image) ?? []
        const names = [...(kubernetesImages.includes(image) ? ['Kubernetes'] : []), ...wanting.map(shownPack)]
        const [pack] = wanting
        problems.push({
          code,
          severity: 'error',
          message: `${message} (needed by ${names.join(', ')})`,
          ...(pack === undefined ? {} : { pack }),
        })
      }
      return { problems, digests: [...digests] }
    },
  }
}
