import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { seeDisk } from '../errors/advice.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import type { Role } from '../base/role.ts'
import { describeChange, type Compared } from '../base/described-change.ts'

/** Content of the audit records of a route. Every route that changes something, or that reads a secret, declares it. */
export interface AuditWords {
  /** `action`: an operation. `activity`: users and sessions. */
  readonly action: 'create' | 'update' | 'delete' | 'action' | 'activity'
  /** Kind of the resource, for example `session`. */
  readonly kind: string
  /**
   * The resource of a request. Also called for refused requests, whose body is unchecked.
   * A handler that finds it only later sets `request.auditResource`.
   */
  readonly resource?: (request: FastifyRequest) => AuditResource
  /**
   * The resource with this uid as it is, called before and after a request that is not refused: the record says what differs, old and new by
   * name. It may throw an AppError where there is no such resource, as before a creation; afterwards the uid comes from
   * `request.auditResource`. Or a text: why a request of this route has nothing more to say. Every route that changes something declares it.
   */
  readonly changes?: View | string
  /**
   * The account that a request without a caller is about; empty where no such account exists, since people type passwords into
   * the wrong field. The body is unchecked too. A handler that finds the account only later sets `request.auditActor`.
   */
  readonly actor?: (request: FastifyRequest) => string
  /** A request without a caller is of a host, which acts by itself: the record names it as the actor. */
  readonly isOfHost?: boolean
  /** Whether a request that changes nothing is recorded, asked when its reply is known; without it, each is. */
  readonly when?: (request: FastifyRequest) => boolean
  /** Whether a request only tries, whatever its outcome: it then has neither intent nor record. The query is checked, the body may not be. */
  readonly isTrial?: (request: FastifyRequest) => boolean
  /** The request is served even if the trail cannot be written; for logins and the ends of sessions. */
  readonly bestEffort?: boolean
}

type View = (uid: string, request: FastifyRequest) => Compared | undefined

export interface AuditResource {
  readonly name?: string | undefined
  readonly uid?: string | undefined
  /** Its project; by default the request's. */
  readonly projectUid?: string | undefined
}

/** Facts of a request in the trail. Unknown texts are empty. */
export interface AuditedRequest {
  readonly actorType: 'user' | 'service'
  readonly actor: string
  readonly role: Role | ''
  readonly address: string
  readonly action: AuditWords['action']
  readonly kind: string
  readonly resourceName: string
  readonly resourceUid: string
  readonly message: string
  readonly requestId: string
  /** Uid of the user; on the platform only. */
  readonly actorUid?: string | undefined
  /** Uid of the project in which the request took effect; on the platform only. */
  readonly projectUid?: string | undefined
  readonly hasSession: boolean
  /** Whether it is a refusal without a record of its own, which is only counted. */
  readonly isCounted: boolean
}

/** Records requests; the room `audit` implements it. */
export interface RequestAudit {
  /**
   * Whether one more refusal gets a record of its own. Call it once for each refusal; a positive answer is used up.
   * @param hasSession callers with a session have their own limit, so that a flood of others cannot hide them
   */
  admit(hasSession: boolean): boolean
  /**
   * Writes the intent of a request to the disk, before the request changes something.
   * @returns the uid for `end`; undefined when the disk cannot be written
   */
  begin(request: AuditedRequest): string | undefined
  /**
   * Records the outcome: in a record of its own, or in the sum of counted refusals, whose intents are then removed.
   * @param started the return value of `begin`, if it was called
   * @returns uid of the record, for the header `AuditUid`, as soon as the record is on the disk; for a sum, as soon as its intent is
   */
  end(request: AuditedRequest, status: number, started: string | undefined): Promise<string>
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** `false`: the route changes nothing, although its method suggests it, or takes only what hosts report by themselves. */
    audit?: AuditWords | false
  }
  interface FastifyRequest {
    /** The resource, set by a handler; it overrides the route's. */
    auditResource: AuditResource | null
    /** The account that the request is about, set by a handler. */
    auditActor: string
    /** Its uid, where it has one. */
    auditActorUid: string
    /** Text that a handler adds to the message of the record. */
    auditNote: string
    /** Result of `changes` before the request. */
    auditBefore: Compared | typeof unreadable | null
    /** For a handler that waits for its turn: reads the resource anew, so that its record has none of the changes made in between. */
    readBefore: () => void
    /** Return value of `begin`; empty before. */
    auditStarted: string
    /** Writes the intent to the disk, on a route with `bestEffort`; for a handler that waits for something else anyway. */
    noteAudit: () => void
    /** The password was right: the request gets a record of its own, however it ends. */
    isProven: boolean
    /** Whether this refusal is only counted; `undefined` until `hasOwnRecord` or the record needs to know. */
    isCounted: boolean | undefined
    /**
     * Whether the refusal of this request gets a record of its own, and thereby lines in the journal; in a flood, record and
     * lines are only summed up. To be called once it is certain that the request is refused.
     */
    hasOwnRecord: () => boolean
  }
}

/** Whether a method changes something (RFC 9110, 9.2.1). */
export const isMutating = (method: string): boolean => !['GET', 'HEAD', 'OPTIONS'].includes(method)

/**
 * Records every request to a route that changes something, refused ones too, and names the record in the header
 * `AuditUid`. The intent is on the disk before the handler begins; if it cannot be written, the reply is 507 and nothing
 * is changed. A route with `bestEffort` has no intent, or its handler writes it. Each route gets hooks of its own, so that
 * reads cost nothing.
 */
export function addAudit(app: FastifyInstance, audit: RequestAudit): UnroutedAudit {
  app.decorateRequest('auditResource', null)
  app.decorateRequest('auditActor', '')
  app.decorateRequest('auditActorUid', '')
  app.decorateRequest('auditNote', '')
  app.decorateRequest('auditBefore', null)
  app.decorateRequest('readBefore', () => undefined)
  app.decorateRequest('auditBegun', '')
  app.decorateRequest('isProven', false)
  app.decorateRequest('isCounted', undefined)
  app.decorateRequest('hasOwnRecord', function () {
    return !isRecorded(this) || !isCounted(this)
  })
  /** Decided once, by the first call. */
  const isCounted = (request: FastifyRequest): boolean => {
    // Once the intent of a logged-in user is on the disk, the change may have been made in part.
    const isAlone = request.isProven || (request.caller && request.auditStarted)
    return (request.isCounted ??= !isAlone && !audit.admit(Boolean(request.caller)))
  }
  app.decorateRequest('noteAudit', function () {
    const { config, schema, url = '' } = this.routeOptions
    if (!config.audit || config.audit.bestEffort !== true) return
    this.auditStarted = audit.begin(describe(this, config.audit, subjectOf(schema, url))) ?? ''
  })
  app.addHook('onRoute', (route) => {
    if (route.config?.audit === false) return
    const methods = [route.method].flat()
    const words = route.config?.audit ?? (methods.some(isMutating) ? undeclared(route) : undefined)
    // Fastify adds a HEAD to each GET; it discloses no secret.
    if (!words || methods.includes('HEAD')) return
    const what = subjectOf(route.schema, route.url)
    const { changes } = words
    const look = typeof changes === 'function' ? looking(words, changes) : undefined
    if (look)
      route.preHandler = [
        ...[route.preHandler ?? []].flat(),
        (request, _reply, done) => {
          request.readBefore = () => {
            request.auditBefore = look(request) ?? null
          }
          request.readBefore()
          done()
        },
      ]
    if (words.bestEffort !== true && methods.some(isMutating)) {
      route.preHandler = [
        ...[route.preHandler ?? []].flat(),
        // The last hook, since the handler changes something after it.
        (request, _reply, done) => {
          if (words.isTrial?.(request) === true) {
            done()
            return
          }
          const started = audit.begin(describe(request, words, what))
          request.auditStarted = started ?? ''
          done(started === undefined ? unwritable() : undefined)
        },
      ]
    }
    route.onSend = [
      ...[route.onSend ?? []].flat(),
      async (request, reply) => {
        if (words.isTrial?.(request) === true || words.when?.(request) === false) return
        const started = request.auditStarted || undefined
        if (reply.statusCode >= 400) isCounted(request)
        else if (look) noteChange(request, look)
        name(reply, await audit.end(describe(request, words, what), reply.statusCode, started))
      },
    ]
  })
  return async (request, reply, { status, code }) => {
    if (!isMutating(request.method)) return
    isCounted(request)
    const change = describe(request, unrouted, `Change at an unknown path: ${code}`)
    name(reply, await audit.end(change, status, undefined))
  }
}

/** In place of a view that cannot be read, as from a damaged database. */
const unreadable = 'unreadable'

/**
 * Reads the resource; nothing where there is none. The reads before and after a change are no part of it: where they fail, the
 * handler is called and its reply stays, since a change that is done must not become a 500.
 */
const looking =
  ({ resource }: AuditWords, changes: View) =>
  (request: FastifyRequest): Compared | typeof unreadable | undefined => {
    try {
      return changes((request.auditResource ?? resource?.(request))?.uid ?? '', request)
    } catch (error) {
      if (error instanceof AppError) return undefined
      // Once for a request, not before and after it.
      if (request.auditBefore !== unreadable)
        request.log.error({ ref: request.id, err: error }, 'what a request changes cannot be read')
      return unreadable
    }
  }

function noteChange(request: FastifyRequest, look: ReturnType<typeof looking>): void {
  const [before, after] = [request.auditBefore ?? {}, look(request) ?? {}]
  const isReadable = before !== unreadable && after !== unreadable
  const change = isReadable ? describeChange(before, after) : 'what changed cannot be read'
  const notes = [request.auditNote, change].filter((note) => note !== '')
  request.auditNote = notes.join(', ') || 'nothing differs'
}

const unwritable = () =>
  new AppError(
    generalErrors.InsufficientStorage,
    `nothing was changed: the audit trail cannot be written; ${seeDisk}`,
  )

/** Whether a request is recorded in the trail. */
function isRecorded({ method, routeOptions: { config } }: FastifyRequest): boolean {
  return config.audit !== false && (config.audit !== undefined || isMutating(method))
}

const subjectOf = (schema: RouteOptions['schema'], url: string) => schema?.summary ?? url

/** Records a request that matches no route, and names the record in the reply. */
export type UnroutedAudit = (request: FastifyRequest, reply: FastifyReply, error: AppError) => Promise<void>

const name = (reply: FastifyReply, uid: string) => void reply.header('AuditUid', uid)

// Without the path, which may contain something that must not be in the trail.
const unrouted: AuditWords = { action: 'action', kind: 'unknown' }

// For a route that changes something and declares no audit: a test fails for it, but its requests are recorded all the same.
const undeclared = ({ url }: RouteOptions): AuditWords => ({ action: 'action', kind: url })

function describe(request: FastifyRequest, words: AuditWords, what: string): AuditedRequest {
  // For a path that cannot be decoded, Fastify passes a request without its decorators.
  const { caller, errorCode, auditNote } = request
  const actor = caller?.userName ?? (request.auditActor || words.actor?.(request))
  const parts = [what, ...(actor === '' ? ['unknown user'] : []), ...(auditNote ? [auditNote] : [])]
  const resource: AuditResource = request.auditResource ?? words.resource?.(request) ?? {}
  const { name: resourceName = '', uid: resourceUid = '' } = resource
  return {
    ...((caller ? caller.kind === 'host' : words.isOfHost)
      ? { actorType: 'service', actor: caller?.userName ?? resourceName }
      : { actorType: 'user', actor: actor ?? '' }),
    role: caller?.role ?? '',
    address: request.peer.address,
    action: words.action,
    kind: words.kind,
    resourceName,
    resourceUid,
    message: `${parts.join(', ')}${errorCode ? `: ${errorCode}` : ''}`,
    requestId: request.id,
    actorUid: caller?.uid ?? request.auditActorUid,
    projectUid: resource.projectUid ?? caller?.projectUid,
    hasSession: Boolean(caller),
    isCounted: request.isCounted === true,
  }
}
