import { BusFailed, NoAnswer } from './failure.ts'
import { openConnection, type Connection } from './connection.ts'
import type { MethodCall } from './message.ts'
import type { BusValue, Variant } from './reader.ts'

/** An interface of an object of a service on the bus. */
export interface BusObject {
  /** Name on the bus; nothing is started that bears it. */
  readonly service: string
  readonly path: string
  readonly interface: string
}

/** The system's message bus, to ask services for their properties. */
export interface Bus {
  /**
   * Reads one property.
   * @param signature the type that the property has to have
   * @throws BusFailed when there is no such answer within `timeoutMs`
   */
  get(object: BusObject, property: string, signature: string, timeoutMs: number): Promise<BusValue>
  /** Reads all properties. @throws BusFailed when there is no answer within `timeoutMs` */
  getAll(object: BusObject, timeoutMs: number): Promise<ReadonlyMap<string, Variant>>
}

/** Where the system's bus listens, by the D-Bus Specification. */
export const systemBusSocket = '/run/dbus/system_bus_socket'

/**
 * Asks by org.freedesktop.DBus.Properties. Questions that are open at the same time share a connection, and it is
 * closed with the last of them.
 */
export function createBus(socket = systemBusSocket): Bus {
  let open: { readonly connection: Connection; questions: number } | undefined

  const connect = () => {
    const mine = {
      questions: 0,
      connection: openConnection(socket, () => {
        if (open === mine) open = undefined
      }),
    }
    return mine
  }
  const ask = async (object: BusObject, member: string, texts: readonly string[], timeoutMs: number) => {
    const mine = (open ??= connect())
    mine.questions += 1
    try {
      return await mine.connection.call(properties(object, member, texts), timeoutMs)
    } catch (error) {
      // If it is the bus itself that hangs, the next question must not hang with it.
      const isLate = error instanceof BusFailed && error.reason === 'timed-out'
      if (isLate && open === mine) open = undefined
      throw error
    } finally {
      mine.questions -= 1
      // Who has a further question after this answer puts it before the event loop turns.
      setImmediate(() => {
        if (mine.questions === 0) mine.connection.close()
      })
    }
  }

  return {
    async get(object, property, signature, timeoutMs) {
      const [answer] = await ask(object, 'Get', [object.interface, property], timeoutMs)
      if (!isVariant(answer) || answer.signature !== signature) {
        throw new BusFailed(
          object.service,
          new NoAnswer('malformed', `${property} is not of type ${signature}`),
        )
      }
      return answer.value
    },
    async getAll(object, timeoutMs) {
      const [answer] = await ask(object, 'GetAll', [object.interface], timeoutMs)
      if (!isProperties(answer)) {
        throw new BusFailed(
          object.service,
          new NoAnswer('malformed', 'properties of another type than a{sv}'),
        )
      }
      return answer
    },
  }
}

function properties({ service, path }: BusObject, member: string, texts: readonly string[]): MethodCall {
  return { service, path, interface: 'org.freedesktop.DBus.Properties', member, texts }
}

function isVariant(value: BusValue | undefined): value is Variant {
  return typeof value === 'object' && 'signature' in value
}

function isProperties(value: BusValue | undefined): value is ReadonlyMap<string, Variant> {
  return (
    value instanceof Map &&
    [...value].every(([name, each]) => typeof name === 'string' && isVariant(each as BusValue))
  )
}
