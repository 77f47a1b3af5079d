/** The last lines of a text, shown from their end: an exception ends with what it says. */
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export function Tail({ text, label, cls = "mlp-tail" }: { text: string; label: string; cls?: string }): JSX.Element {
  const box = useRef<HTMLPreElement>(null);
  useLayoutEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  return <pre ref={box} class={cls} tabIndex={0} aria-label={label}>{text}</pre>;
}
