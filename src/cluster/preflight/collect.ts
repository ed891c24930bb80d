import { createHideOf } from '../../definition/slots/secrets.ts'
import type { Logger } from '../../system/log.ts'
import { sensitiveValues } from '../configuration/mask-configuration.ts'
import { unknownPack } from '../change/version.ts'
import type { Engine } from '../engine/engine.ts'
import type { ClusterHost } from '../host/cluster-host.ts'
import type { ContentPreflight } from '../prepare/content-needs.ts'
import type { Prepared } from '../prepare/prepared.ts'
import type { PreflightProblem } from '../problem.ts'
import type { Wanted } from '../wanted.ts'

export interface CollectOptions {
  readonly engine: Pick<Engine, 'packs' | 'preflight' | 'images' | 'contentOf'>
  readonly host: Pick<ClusterHost, 'preflight'>
  readonly content: ContentPreflight
  readonly log: Logger
}

export interface Preflight {
  /** Errors before warnings. */
  readonly problems: readonly PreflightProblem[]
  readonly isPossible: boolean
  /** Digests of the images, programs and charts in the content that the cluster needs, as far as they were found. */
  readonly digests: readonly string[]
}

/** Makes all checks at once, and reports everything that they find; the reports may contain sensitive values, the log does not. */
export function createPreflight({ engine, host, content, log }: CollectOptions) {
  /**
   * @param posted findings of what was posted
   * @param running what runs on this host, for a change of it
   */
  return async function collect(
    { wanted, variables, derived, problems: prepared, images, chartDigests }: Prepared,
    posted: readonly PreflightProblem[],
    signal: AbortSignal,
    running?: Wanted,
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
    const { pack } = wanted.kubernetes
    if (isWhole && !engine.packs.includes(pack))
      return reportOf([
        ...prepared,
        ...posted,
        {
          ...{ code: 'KubernetesUnknown', severity: 'error' },
          message: unknownPack(pack, engine.packs),
        },
      ])
    let kubernetesImages: readonly string[] = []
    const ofHost = check('this host', () => host.preflight(wanted, signal, running))
    const [ofEngine, ofImageList] = await Promise.all([
      check('Kubernetes', () => engine.preflight(wanted, signal)),
      check('the images of Kubernetes', async () => {
        kubernetesImages = await engine.images(wanted, signal)
        return []
      }),
    ])
    // Why its programs cannot say is among the findings of the engine then.
    const ofImages = ofEngine.some(isError) ? [] : ofImageList
    let digests: readonly string[] = []
    const ofContent = await check('the content', async () => {
      const found = await content.check({ packs: images, kubernetesImages })
      digests = [...found.digests, ...chartDigests, ...(await engine.contentOf(wanted))]
      return found.problems
    })
    // What is not wholly prepared makes these checks fail for a reason that is reported already.
    const checked = [...(await ofHost), ...ofEngine, ...ofImages, ...ofContent].filter(
      ({ code }) => isWhole || code !== 'CheckFailed',
    )
    return { ...reportOf([...prepared, ...posted, ...checked]), digests }
  }
}

const isError = ({ severity }: PreflightProblem) => severity === 'error'

const reportOf = (problems: readonly PreflightProblem[]): Preflight => ({
  problems: [...problems.filter(isError), ...problems.filter((each) => !isError(each))],
  isPossible: !problems.some(isError),
  digests: [],
})
