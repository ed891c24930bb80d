import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { seeDisk } from '../errors/advice.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import type { Role } from '../base/role.ts'

/** How the trail speaks of a route. Everything that changes something declares it, and reads of secrets. */
export interface AuditWords {
  /** `action`: an operation. `activity`: users and sessions. */
  readonly action: 'create' | 'update' | 'delete' | 'action' | 'activity'
  /** Kind of the resource, for example `session`. */
  readonly kind: string
  /**
   * Which one. Also asked of refused requests, whose body is unchecked.
   * What is known only later, a handler puts into `request.auditResource`.
   */
  readonly resource?: (request: FastifyRequest) => AuditResource
  /**
   * Which known account is meant, where there is no caller; empty where none is: people type passwords into the wrong
   * field. Body as above. What is known only later, a handler puts into `request.auditActor`.
   */
  readonly actor?: (request: FastifyRequest) => string
  /** Goes on where the trail cannot be written; for logins and the ends of sessions. */
  readonly bestEffort?: boolean
}

export interface AuditResource {
  readonly name?: string | undefined
  readonly uid?: string | undefined
}

/** What the trail is told of a request. Text that is not known is empty. */
export interface AuditedRequest {
  readonly actor: string
  readonly role: Role | ''
  readonly address: string
  readonly action: AuditWords['action']
  readonly kind: string
  readonly resourceName: string
  readonly resourceUid: string
  readonly message: string
  readonly requestId: string
  readonly hasSession: boolean
  /** Whether it is a refusal that has no record of its own. */
  readonly isCounted: boolean
}

/** Where requests are recorded; the room of the trail has it. */
export interface RequestAudit {
  /** Whether one more refusal has a record of its own; to be asked once for each. */
  admit(hasSession: boolean): boolean
  /**
   * Notes durably that a request is about to change something.
   * @returns for `end`; nothing where the disk cannot be written
   */
  begin(request: AuditedRequest): string | undefined
  /**
   * Records how it ended.
   * @param begun what `begin` gave
   * @returns uid of the record, for the header `AuditUid`, as soon as that is on the disk
   */
  end(request: AuditedRequest, status: number, begun: string | undefined): Promise<string>
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** `false`: nothing is changed, whatever the method says. */
    audit?: AuditWords | false
  }
  interface FastifyRequest {
    /** What a handler knows of the resource; goes before what the route declares. */
    auditResource: AuditResource | null
    /** Account that a handler found out is meant. */
    auditActor: string
    /** What a handler adds to the words, for people. */
    auditNote: string
    /** What `begin` gave; empty before. */
    auditBegun: string
    /** Notes durably what is going on, on a route with `bestEffort`; for a handler that waits for something else anyway. */
    noteAudit: () => void
    /** The password was right: whatever comes of the request has a record of its own. */
    isProven: boolean
    /** Whether this refusal is counted only; nothing while that was not asked. */
    isCounted: boolean | undefined
    /**
     * Whether the refusal of this request has a record of its own, and thereby lines in the journal: of a storm, both
     * have a sum. To be asked when it is clear that it is refused.
     */
    isTold: () => boolean
  }
}

/** Whether a method changes something (RFC 9110, 9.2.1). */
export const isMutating = (method: string): boolean => !['GET', 'HEAD', 'OPTIONS'].includes(method)

/**
 * Records every request to a route that changes something, refused ones too, and names the record in the header
 * `AuditUid`. The intent is on the disk before the handler begins; where it cannot be, the answer is 507 and nothing
 * was changed. A route with `bestEffort` has no intent, or its handler notes it. Each route gets hooks of its own: reads pay nothing.
 */
export function addAudit(app: FastifyInstance, audit: RequestAudit): UnroutedAudit {
  app.decorateRequest('auditResource', null)
  app.decorateRequest('auditActor', '')
  app.decorateRequest('auditNote', '')
  app.decorateRequest('auditBegun', '')
  app.decorateRequest('isProven', false)
  app.decorateRequest('isCounted', undefined)
  app.decorateRequest('isTold', function () {
    return !isRecorded(this) || !isCounted(this)
  })
  /** Decided once, by the first who asks. */
  const isCounted = (request: FastifyRequest): boolean => {
    // What an intent of a user was written for may have been done in part.
    const isAlone = request.isProven || (request.caller && request.auditBegun)
    return (request.isCounted ??= !isAlone && !audit.admit(Boolean(request.caller)))
  }
  app.decorateRequest('noteAudit', function () {
    const { config, schema, url = '' } = this.routeOptions
    if (!config.audit || config.audit.bestEffort !== true) return
    this.auditBegun = audit.begin(describe(this, config.audit, subjectOf(schema, url))) ?? ''
  })
  app.addHook('onRoute', (route) => {
    if (route.config?.audit === false) return
    const methods = [route.method].flat()
    const words = route.config?.audit ?? (methods.some(isMutating) ? undeclared(route) : undefined)
    // A GET brings its HEAD along, which gives no secret away.
    if (!words || methods.includes('HEAD')) return
    const what = subjectOf(route.schema, route.url)
    if (words.bestEffort !== true && methods.some(isMutating)) {
      route.preHandler = [
        ...[route.preHandler ?? []].flat(),
        // Last, since after it something is changed.
        (request, _reply, done) => {
          const begun = audit.begin(describe(request, words, what))
          request.auditBegun = begun ?? ''
          done(begun === undefined ? unwritable() : undefined)
        },
      ]
    }
    route.onSend = [
      ...[route.onSend ?? []].flat(),
      async (request, reply) => {
        const begun = request.auditBegun || undefined
        if (reply.statusCode >= 400) isCounted(request)
        name(reply, await audit.end(describe(request, words, what), reply.statusCode, begun))
      },
    ]
  })
  return async (request, reply, { status, code }) => {
    if (!isMutating(request.method)) return
    isCounted(request)
    const change = describe(request, unrouted, `Change at no known path: ${code}`)
    name(reply, await audit.end(change, status, undefined))
  }
}

const unwritable = () =>
  new AppError(
    generalErrors.InsufficientStorage,
    `nothing was changed: the audit trail cannot be written; ${seeDisk}`,
  )

/** Whether the trail hears of a request. */
function isRecorded({ method, routeOptions: { config } }: FastifyRequest): boolean {
  return config.audit !== false && (config.audit !== undefined || isMutating(method))
}

const subjectOf = (schema: RouteOptions['schema'], url: string) => schema?.summary ?? url

/** Records a request that met no route, and names the record. */
export type UnroutedAudit = (request: FastifyRequest, reply: FastifyReply, error: AppError) => Promise<void>

const name = (reply: FastifyReply, uid: string) => void reply.header('AuditUid', uid)

// Not its path: that may hold what should not stand in the trail.
const unrouted: AuditWords = { action: 'action', kind: 'unknown' }

// A test finds the route; until then it is better recorded than not.
const undeclared = ({ url }: RouteOptions): AuditWords => ({ action: 'action', kind: url })

function describe(request: FastifyRequest, words: AuditWords, what: string): AuditedRequest {
  // Of a path that cannot be decoded, Fastify gives a request without what it is decorated with.
  const { caller, errorCode, auditNote } = request
  const actor = caller?.userName ?? (request.auditActor || words.actor?.(request))
  const parts = [what, ...(actor === '' ? ['unknown user'] : []), ...(auditNote ? [auditNote] : [])]
  const { name: resourceName = '', uid: resourceUid = '' } =
    request.auditResource ?? words.resource?.(request) ?? {}
  return {
    actor: actor ?? '',
    role: caller?.role ?? '',
    address: request.peer.address,
    action: words.action,
    kind: words.kind,
    resourceName,
    resourceUid,
    message: `${parts.join(', ')}${errorCode ? `: ${errorCode}` : ''}`,
    requestId: request.id,
    hasSession: Boolean(caller),
    isCounted: request.isCounted === true,
  }
}
